use crate::diagnostic::{Diagnostic, rule};
use crate::spec::{keywords::TYPES, nearest};
use crate::text::Location;

rule! {
    /// a :type that JSON Schema does not have
    ///
    /// The types are string, number, integer, boolean, array, object and null. The word is sent as it is, and every API refuses the whole
    /// request for it.
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
        "nil" => String::from("`nil` is no type"),
        _ => format!("`{word}` is no JSON Schema type"),
    };
    let finding = Diagnostic::new(&UNKNOWN_TYPE, at, message);
    let meant = TYPES.into_iter().find(|known| known.eq_ignore_ascii_case(plain)).or_else(|| alias(plain));
    match (meant, nearest(plain, TYPES)) {
        (Some(known), _) => finding
            .labelled(format!("did you mean `{known}`?"))
            .fixed_by(format!("write `{known}`"), at.span, known),
        (None, Some(known)) => finding
            .labelled(format!("did you mean `{known}`?"))
            .maybe_fixed_by(format!("write `{known}`"), at.span, known),
        (None, None) => finding.note(format!("types: {}", TYPES.join(", "))),
    }
}

/// What other languages call a type.
fn alias(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "bool" => "boolean",
        "int" | "long" => "integer",
        "float" | "double" => "number",
        "list" | "vector" => "array",
        "str" | "text" | "file" | "path" | "directory" => "string",
        "dict" | "map" | "hash-table" | "plist" | "alist" => "object",
        "nil" | "none" => "null",
        _ => return None,
    })
}
