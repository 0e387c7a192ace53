use crate::diagnostic::{Diagnostic, rule};
use crate::spec::{keywords::TYPES, nearest};
use crate::text::Location;

rule! {
    /// an unknown :type
    ///
    /// The types are string, number, integer, boolean, array, object and null. Any other word is sent unchanged, and
    /// every API rejects the whole request.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type bool)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type boolean)))
    /// ```
    pub(crate) UNKNOWN_TYPE, "DT204", "unknown-type", Error
}

pub(in crate::spec) fn finding(at: Location, word: &str) -> Diagnostic {
    let plain = word.strip_prefix(':').unwrap_or(word);
    let message = match word {
        "nil" => String::from("unknown type `nil`"),
        _ => format!("unknown type `{word}`"),
    };
    let finding = Diagnostic::new(&UNKNOWN_TYPE, at, message);
    let known = |word: &str| TYPES.into_iter().find(|known| known.eq_ignore_ascii_case(word));
    if let Some(note) = hint(plain) {
        finding.note(note)
    } else if let Some(known) = known(plain).or_else(|| same_type(plain)) {
        finding.labelled(format!("did you mean `{known}`?")).fixed_by(format!("write `{known}`"), at.span, known)
    } else if let Some(known) = related_type(plain).or_else(|| nearest(plain, TYPES)) {
        finding.did_you_mean(at.span, known)
    } else {
        finding.note(format!("types: {}", TYPES.join(", ")))
    }
}

/// Returns how to write types that JSON Schema expresses differently.
fn hint(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "date" => "a date is `:type string :format \"date\"`",
        "time" => "a time is `:type string :format \"time\"`",
        "datetime" | "date-time" | "timestamp" => "a time stamp is `:type string :format \"date-time\"`",
        "uri" | "url" => "an address is `:type string :format \"uri\"`",
        "uuid" => "an identifier is `:type string :format \"uuid\"`",
        "email" => "an address is `:type string :format \"email\"`",
        "any" => "omit `:type` to allow any value",
        "enum" => "use the type of its values, as in `:type string :enum [\"first\" \"second\"]`",
        _ => return None,
    })
}

/// Returns the type for its name in another language.
fn same_type(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "bool" => "boolean",
        "int" => "integer",
        "float" | "double" => "number",
        "str" => "string",
        "dict" => "object",
        _ => return None,
    })
}

/// Returns the JSON type that probably represents the value.
fn related_type(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "list" | "vector" => "array",
        "text" | "file" | "path" | "directory" => "string",
        "map" | "hash-table" | "plist" | "alist" => "object",
        "long" => "integer",
        "nil" | "none" => "null",
        _ => return None,
    })
}
