use crate::diagnostic::{Diagnostic, rule};
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// an unknown key of a tool form
    ///
    /// gptel and deftool ignore unknown keys, so the intended setting has no effect. Some keys differ from the JSON of
    /// the APIs: `:parameters` is `:args` here.
    ///
    /// ```eld fails
    /// (deftool :name "now" :desciption "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    pub(crate) UNKNOWN_TOOL_KEY, "DT108", "unknown-tool-key", Warning
}

/// Names of the keys in other programs.
const ALIASES: [(&str, &str); 23] = [
    ("doc", "description"),
    ("docstring", "description"),
    ("documentation", "description"),
    ("summary", "description"),
    ("parameters", "args"),
    ("params", "args"),
    ("arguments", "args"),
    ("argument", "args"),
    ("input-schema", "args"),
    ("input_schema", "args"),
    ("inputSchema", "args"),
    ("properties", "args"),
    ("fn", "function"),
    ("func", "function"),
    ("lambda", "function"),
    ("handler", "function"),
    ("id", "name"),
    ("title", "name"),
    ("permissions", "allow"),
    ("permission", "allow"),
    ("file", "script"),
    ("group", "category"),
    ("examples", "accepts"),
];

/// Returns the key that `key` was probably meant to be.
pub(in crate::spec) fn meant<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == key).map(|(_, known)| *known);
    match alias.and_then(|alias| known.iter().find(|known| **known == alias)) {
        Some(known) => Some(known),
        // Abbreviations such as `:descr`.
        None if key.len() >= 4 && let Some(known) = known.iter().find(|known| known.starts_with(key)) => {
            Some(known)
        }
        None => nearest(key, known.iter().copied()),
    }
}

/// The finding for `:tool-forms` in a file that Emacs loads, where the form would be an unknown function.
pub(in crate::spec) fn tool_forms_in_code(at: Location) -> Diagnostic {
    Diagnostic::new(&UNKNOWN_TOOL_KEY, at, "`:tool-forms` has no effect in Emacs Lisp")
        .note("write the form in an `.eld` file of the project, or in the folder of this file")
}

/// `of` is the owner of the key with its article, such as `a tool`.
pub(in crate::spec) fn finding(at: Location, key: &str, of: &str, known: &[&str]) -> Diagnostic {
    let finding = Diagnostic::new(&UNKNOWN_TOOL_KEY, at, format!("unknown key `:{key}` for {of}"));
    match (key, meant(key, known)) {
        ("optional" | "required" | "type", _) => {
            finding.note("it belongs in one of the plists of `:args`")
        }
        (_, Some(near)) => finding.did_you_mean(at.span, format!(":{near}")),
        (_, None) => finding.note("the key is ignored"),
    }
}
