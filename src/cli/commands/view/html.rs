//! The HTML page: the files of `page/` with the data as JSON.
//!
//! The data cannot leave its `<script type="application/json">` element, because `<`, `>` and `&` are escaped. If it
//! could, the Content-Security-Policy would still reject it: the page may load nothing but the images in its data, and
//! run only the script and use only the style with these hashes. The script creates text nodes, never HTML from data.

use deftool_lang::text::sha256_base64;
use deftool_record::Timeline;
use serde::Serialize;

use super::difference::Row;
use crate::cli::terminal::output::{clean, escape_json};

/// The first bytes of every page.
pub(super) const BEGINNING: &str = "<!DOCTYPE html>\n<!-- Written by deftool view -->";

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
/// The parts of the script, in order.
const SCRIPTS: [&str; 7] = [
    include_str!("page/text.js"),
    include_str!("page/entries.js"),
    include_str!("page/overview.js"),
    include_str!("page/list.js"),
    include_str!("page/runs.js"),
    include_str!("page/difference.js"),
    include_str!("page/main.js"),
];

/// The data of a page.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    /// One file, or two files that are compared.
    pub(super) files: Vec<ShownFile>,
    /// The aligned entries of two files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rows: Option<Vec<Row>>,
}

#[derive(Debug, Serialize)]
pub(super) struct ShownFile {
    /// The name without its folder.
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) timeline: Timeline,
}

/// Returns the page as HTML.
pub(super) fn render(page: &Page) -> String {
    // A parser removes carriage returns before it computes the hashes.
    let [template, style, script] = [TEMPLATE, STYLE, &SCRIPTS.join("\n")].map(|text| text.replace('\r', ""));
    let policy = format!(
        "default-src 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        sha256_base64(&style),
        sha256_base64(&script)
    );
    let names: Vec<&str> = page.files.iter().map(|file| file.name.as_str()).collect();
    let title = escape_html(&format!("{} – deftool view", names.join(" and ")));
    let data = escape_script(escape_json(serde_json::to_string(page).unwrap_or_default()));
    let mut html = String::with_capacity(template.len() + style.len() + script.len() + data.len() + 1024);
    // The values are not searched for placeholders.
    let mut rest = template.as_str();
    while let Some((before, (name, after))) =
        rest.split_once("{{").and_then(|(before, after)| Some((before, after.split_once("}}")?)))
    {
        html.push_str(before);
        html.push_str(match name {
            "policy" => &policy,
            "style" => &style,
            "script" => &script,
            "title" => &title,
            "data" => &data,
            _ => "",
        });
        rest = after;
    }
    html.push_str(rest);
    html
}

/// Escapes text for an element or an attribute. Control characters are replaced.
fn escape_html(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Escapes JSON for a script element: such an element ends at `</script`, and `<!--` changes how its text is parsed.
fn escape_script(json: String) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
