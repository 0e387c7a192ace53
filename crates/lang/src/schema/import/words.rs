//! Messages about specs in the words of JSON.

use crate::diagnostic::Diagnostic;

/// Words about specs, and those about JSON that replace them.
const WORDS: [(&str, &str); 18] = [
    ("neither an argument key nor a JSON Schema keyword", "not a JSON Schema keyword"),
    (" without `:optional t`", ""),
    ("a schema plist such as `(:type string)`", "a schema"),
    ("a vector of schema plists", "an array of schemas"),
    ("schema plist", "schema"),
    ("a plist of schemas", "an object of schemas"),
    ("a plist", "an object"),
    ("plists", "objects"),
    ("a vector", "an array"),
    ("an empty vector", "an empty array"),
    ("a symbol such as `string`", "a type such as `string`"),
    // As JSON values are written in Lisp.
    (", found a list", ", found an object"),
    (", found nil", ", found an empty object"),
    (", found a symbol", ", found true"),
    (", found a keyword", ", found false or null"),
    ("t or :json-false", "true or false"),
    (":json-false", "false"),
    (":null", "null"),
];

/// Returns a finding about a spec as a finding about JSON. Its fix would write Lisp.
pub fn of_json(mut finding: Diagnostic) -> Diagnostic {
    finding.fix = None;
    finding.message = in_json_words(&finding.message).unwrap_or(finding.message);
    finding.label = finding.label.and_then(|label| in_json_words(&label));
    finding.notes = finding.notes.iter().filter_map(|note| in_json_words(note)).collect();
    for label in &mut finding.labels {
        label.message = in_json_words(&label.message).unwrap_or_default();
    }
    finding
}

/// Returns `text` with keys as in JSON, without the clauses that show code in Lisp. Returns `None` if nothing is left.
fn in_json_words(text: &str) -> Option<String> {
    let text = WORDS.iter().fold(text.to_owned(), |text, (spec, json)| text.replace(spec, json));
    let text = without_colons(&text);
    let is_code = |clause: &str| {
        let mut keys = clause.match_indices("`:").filter_map(|(at, _)| clause.get(at + 2..));
        clause.contains("(:") || keys.any(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '$'))
    };
    let clauses: Vec<&str> = text.split("; ").filter(|clause| !is_code(clause)).collect();
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// Writes `` `:key` `` as `` `key` ``.
fn without_colons(text: &str) -> String {
    let (mut written, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("`:") {
        written.push_str(before);
        let is_key = |word: &str| !word.is_empty() && !word.contains([' ', '`', ':', '(']);
        match after.split_once('`').filter(|(word, _)| is_key(word)) {
            Some((word, after)) => {
                written.extend(["`", word, "`"]);
                rest = after;
            }
            None => {
                written.push_str("`:");
                rest = after;
            }
        }
    }
    written.push_str(rest);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_specs_become_messages_about_json() {
        for (spec, json) in [
            ("missing `:type` for the argument `:x`", Some("missing `type` for the argument `x`")),
            (
                "OpenAI and Gemini reject such an array; add `:items (:type string)` or another schema",
                Some("OpenAI and Gemini reject such an array"),
            ),
            ("write `:a b`", None),
            ("invalid `:default`: it is not an integer", Some("invalid `default`: it is not an integer")),
            ("expected t or :json-false, found nil", Some("expected true or false, found an empty object")),
            ("no key at all: `", Some("no key at all: `")),
        ] {
            assert_eq!(in_json_words(spec).as_deref(), json, "{spec}");
        }
    }
}
