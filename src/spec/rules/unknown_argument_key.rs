use crate::diagnostic::{Diagnostic, rule};
use crate::spec::{keywords, nearest};
use crate::text::Location;

rule! {
    /// a key that is no JSON Schema keyword
    ///
    /// It is sent as it is. Most APIs ignore what they do not know, Gemini and OpenAI in strict mode refuse it; what it should have said is
    /// said to nobody.
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

/// `meant` is what [`meant`] says.
pub(in crate::spec) fn finding(at: Location, key: &str, meant: Option<&str>) -> Diagnostic {
    let message = format!("`:{key}` is no key of an argument or of JSON Schema");
    let finding = Diagnostic::new(&UNKNOWN_ARGUMENT_KEY, at, message);
    match meant {
        Some(near) => finding.meant(at.span, format!(":{near}")),
        None => finding,
    }
}

/// The keyword that `key` is likely a misspelling of, or another name for.
pub(in crate::spec) fn meant(key: &str) -> Option<&'static str> {
    keywords::in_other_case(key)
        .or_else(|| alias(key))
        .or_else(|| nearest(key, keywords::names().chain(["optional"])))
}

/// What others call a keyword.
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
