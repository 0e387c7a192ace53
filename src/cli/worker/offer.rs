//! The tools that an MCP server offers.

use std::path::Path;

use deftool_engine::Servers;
use deftool_lang::spec::{FileKind, McpServer, lower};
use deftool_lang::syntax::parse;
use deftool_lang::text::{Sources, one_line};
use deftool_mcp::{Offer, inspect};
use deftool_project::{Load, mcp_permission_request};

use crate::cli::outcome::{CliError, runtime};
use crate::cli::project::trust::stored_trust;
use crate::cli::terminal::output::clean;

/// Returns what a server of the project at `root` offers, or why it cannot be used.
///
/// # Errors
/// If the server is not trusted.
pub(in crate::cli) async fn offer_of(
    load: &Load,
    server: &McpServer,
    root: &Path,
) -> Result<Result<Offer, String>, CliError> {
    let missing = stored_trust(root).missing_requests(vec![mcp_permission_request(load, server)]);
    if let Some(missing) = missing.first() {
        let message = format!("not trusted: {missing}; review the spec, then run `deftool trust grant`");
        return Err(CliError::Usage(message));
    }
    match Servers::remote(server, None, root) {
        Ok(remote) => Ok(inspect(&remote).await.map_err(|reason| one_line(clean(&reason)))),
        Err(error) => Ok(Err(error)),
    }
}

/// Returns what the MCP server at a URL, or a program with its arguments, offers. No trust is required, because the user
/// names it.
///
/// # Errors
/// If `server` is neither, or does not offer its tools.
pub(in crate::cli) fn offer_of_named(server: &str, current: &Path) -> Result<Offer, CliError> {
    let unusable = |why: &str| CliError::Usage(format!("MCP server `{}`: {why}", clean(server)));
    let is_url = server.starts_with("http://") || server.starts_with("https://");
    let words = if is_url { Some(vec![server.to_owned()]) } else { words_of(server) };
    let words = words.ok_or_else(|| unusable("unclosed quotation mark in the command"))?;
    if words.is_empty() {
        return Err(CliError::Usage(String::from("missing the command or URL of an MCP server")));
    }
    let words: Vec<String> = words.into_iter().map(|word| serde_json::json!(word).to_string()).collect();
    let value =
        if is_url { format!(":url {}", words.join("")) } else { format!(":command [{}]", words.join(" ")) };
    let text = format!("(defmcp :name \"server\" {value})");
    let source = Sources::new().id_ahead(0);
    let (definitions, findings) = lower(source, &text, &parse(source, &text).0, FileKind::Specs);
    let [found] = definitions.mcp_servers.as_slice() else {
        let why = findings.first().map_or("neither a file, a URL nor a command", |finding| &finding.message);
        return Err(CliError::Usage(format!("`{}`: {why}", clean(server))));
    };
    let remote = Servers::remote(found, None, current).map_err(|why| unusable(&why))?;
    let offer = runtime()?.block_on(inspect(&remote));
    offer.map_err(|reason| unusable(&one_line(clean(&reason))))
}

/// Splits a command line at blanks, like a shell without expansions: quotation marks keep blanks. Returns `None` if one is
/// not closed.
fn words_of(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut mark) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match mark {
            Some(open) if c == open => mark = None,
            None if c == '"' || c == '\'' => {
                mark = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            Some(_) | None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    mark.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::words_of;

    #[test]
    fn commands_are_split_at_blanks_outside_of_quotation_marks() {
        for (command, words) in [
            ("npx  -y server", Some(&["npx", "-y", "server"][..])),
            (
                r#"serve "/tmp/my dir" --name='a "b"' ''"#,
                Some(&["serve", "/tmp/my dir", "--name=a \"b\"", ""]),
            ),
            ("", Some(&[])),
            ("serve 'a", None),
        ] {
            let expected = words.map(|words| words.iter().map(ToString::to_string).collect());
            assert_eq!(words_of(command), expected, "{command}");
        }
    }
}
