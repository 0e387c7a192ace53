use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Label, rule};
use crate::spec::Tool;
use crate::text::{Location, Spanned};

rule! {
    /// two names that differ only in case, dashes or underscores
    ///
    /// Models and people mix up such names of tools and arguments. On some file systems, the scripts of two such tools are
    /// the same file.
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
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "file_name" :description "A name." :type string) (:name "fileName" :description "Another." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "old_name" :description "A name." :type string) (:name "new_name" :description "Another." :type string)))
    /// ```
    pub(crate) NEAR_NAME, "DT128", "near-name", Warning
}

/// Reports `name`, which is similar to the `first` name.
pub fn finding(at: Location, name: &str, first: (&str, Location)) -> Diagnostic {
    let message = format!("`{name}` is easily confused with `{}`", first.0);
    let mut finding = Diagnostic::new(&NEAR_NAME, at, message);
    finding.labels.push(Label { location: first.1, message: String::from("the similar name") });
    finding
}

/// Checks the arguments of a tool.
pub(in crate::spec) fn check(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<String, &Spanned<String>> = HashMap::new();
    let at = |name: &Spanned<String>| Location { source: tool.source, span: name.span };
    for name in tool.arguments.iter().map(|argument| &argument.name) {
        let plain: String =
            name.value.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect();
        match seen.get(&plain) {
            Some(first) => findings.push(finding(at(name), &name.value, (&first.value, at(first)))),
            None => drop(seen.insert(plain, name)),
        }
    }
}
