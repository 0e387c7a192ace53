use std::borrow::Cow;
use std::collections::HashMap;

use deftool_lang::diagnostic::{Diagnostic, Label, rule};
use deftool_lang::text::Location;

use crate::model::Load;

rule! {
    /// two tool names that differ only in case, dashes or underscores
    ///
    /// Models confuse such names, and on some file systems their scripts are the same file.
    ///
    /// ```eld fails
    /// (deftool :name "read_note" :description "Read a note.")
    /// (deftool :name "read-note" :description "Read a note aloud.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "read_note" :description "Read a note.")
    /// (deftool :name "speak_note" :description "Read a note aloud.")
    /// ```
    pub(crate) NEAR_NAME, "DT128", "near-name", Warning
}

pub(crate) fn check(load: &Load) -> Vec<Diagnostic> {
    let mut seen = HashMap::<_, (&str, Location)>::new();
    let mut findings = Vec::new();
    for tool in load.tools.iter().map(|loaded| &loaded.tool) {
        let at = Location { source: tool.source, span: tool.name.span };
        let name = tool.name.value.as_str();
        let is_folded = !name.bytes().any(|byte| byte == b'-' || byte.is_ascii_uppercase());
        let folded = if is_folded {
            Cow::Borrowed(name)
        } else {
            Cow::Owned(name.replace('-', "_").to_ascii_lowercase())
        };
        let key = (load.project_of(tool.source), folded);
        match seen.get(&key) {
            // Equal names are reported as duplicates.
            Some((name, first)) if *name != tool.name.value => {
                let message = format!("`{}` is easily confused with `{name}`", tool.name.value);
                let mut finding = Diagnostic::new(&NEAR_NAME, at, message);
                finding.labels.push(Label { location: *first, message: String::from("the similar name") });
                findings.push(finding);
            }
            Some(_) => {}
            None => {
                seen.insert(key, (&tool.name.value, at));
            }
        }
    }
    findings
}
