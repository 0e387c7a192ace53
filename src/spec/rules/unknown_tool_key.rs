use crate::diagnostic::{Diagnostic, rule};
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// a key that no tool form has
    ///
    /// gptel and deftool drop a key that they do not know, and what was meant by it never happens. Keys of the JSON that an
    /// API is sent are called otherwise here: `:parameters` is `:args`.
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

/// What other programs call the keys.
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

/// The key that `key` was meant to be, if that can be guessed.
pub(in crate::spec) fn meant<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == key).map(|(_, known)| *known);
    match alias.and_then(|alias| known.iter().find(|known| **known == alias)) {
        Some(known) => Some(known),
        // `:descr` and the like.
        None if key.len() >= 4 && let Some(known) = known.iter().find(|known| known.starts_with(key)) => {
            Some(known)
        }
        None => nearest(key, known.iter().copied()),
    }
}

/// `of`: what has the key, as in `a tool`.
pub(in crate::spec) fn finding(at: Location, key: &str, of: &str, known: &[&str]) -> Diagnostic {
    let finding = Diagnostic::new(&UNKNOWN_TOOL_KEY, at, format!("`:{key}` is no key of {of}"));
    match (key, meant(key, known)) {
        ("optional" | "required" | "type", _) => {
            finding.note("it belongs into one of the plists of `:args`")
        }
        (_, Some(near)) => finding.meant(at.span, format!(":{near}")),
        (_, None) => finding.note("it is dropped"),
    }
}
