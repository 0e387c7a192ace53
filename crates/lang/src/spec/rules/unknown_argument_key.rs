use crate::diagnostic::{Diagnostic, rule};
use crate::spec::{keywords, nearest};
use crate::text::Location;

rule! {
    /// an unknown schema keyword
    ///
    /// The key is sent unchanged. Most APIs ignore unknown keys; Gemini, and OpenAI in strict mode, reject them. The
    /// intended setting has no effect.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :desciption "An x." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string)))
    /// ```
    pub(crate) UNKNOWN_ARGUMENT_KEY, "DT206", "unknown-argument-key", Warning
}

/// `meant` is the result of [`meant`].
pub(in crate::spec) fn finding(at: Location, key: &str, meant: Option<&str>) -> Diagnostic {
    let message = format!("unknown key `:{key}`, neither an argument key nor a JSON Schema keyword");
    let finding = Diagnostic::new(&UNKNOWN_ARGUMENT_KEY, at, message);
    match meant {
        Some(near) => finding.did_you_mean(at.span, format!(":{near}")),
        None => finding,
    }
}

/// Returns the keyword for which `key` is probably a misspelling or a synonym.
pub(in crate::spec) fn meant(key: &str) -> Option<&'static str> {
    keywords::in_other_case(key)
        .or_else(|| alias(key))
        .or_else(|| nearest(key, keywords::names().chain(["optional"])))
}

/// Returns the keyword for a name used elsewhere.
fn alias(key: &str) -> Option<&'static str> {
    Some(match key {
        "desc" | "doc" | "documentation" | "help" => "description",
        "choices" | "values" | "options" | "one-of" => "enum",
        "min" => "minimum",
        "max" => "maximum",
        "regex" | "regexp" => "pattern",
        "element" | "elements" | "of" => "items",
        "fields" => "properties",
        "example" => "examples",
        _ => return None,
    })
}
