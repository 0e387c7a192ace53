use crate::diagnostic::{Diagnostic, rule};
use crate::spec::keywords::TYPES;
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// a value of the wrong kind for its key
    ///
    /// The value does not make sense for the key: a number instead of a string, an unknown word, a duration without a
    /// unit.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time." :timeout 5)
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time." :timeout "5s")
    /// ```
    pub(crate) WRONG_VALUE, "DT113", "wrong-value", Error
}

/// `found` is the kind of the value, such as `a string`, or the value in backticks.
pub(in crate::spec) fn finding(at: Location, key: &str, expected: &str, found: &str) -> Diagnostic {
    Diagnostic::new(&WRONG_VALUE, at, format!("`:{key}` takes {expected}, found {found}"))
}

/// Reports the keyword `word`, with its colon, in the position of a value.
pub(in crate::spec) fn keyword(at: Location, key: &str, word: &str) -> Diagnostic {
    let plain = word.strip_prefix(':').unwrap_or(word);
    let expected = match key {
        "type" | "effect" => "a symbol",
        "name" | "description" => "a string",
        _ => "a value",
    };
    let finding = finding(at, key, expected, &format!("the keyword `{word}`"));
    let is_meant = match key {
        "type" => TYPES.contains(&plain),
        "effect" => matches!(plain, "pure" | "keyed" | "once"),
        _ => false,
    };
    if is_meant {
        return finding.fixed_by(format!("write `{plain}`"), at.span, plain);
    }
    let constant = match plain {
        "true" | "t" => Some("t"),
        _ => nearest(word, [":json-false", ":false", ":null", ":json-null"]),
    };
    match constant.filter(|_| !matches!(key, "type" | "effect" | "name" | "description")) {
        Some(constant) => finding.labelled(format!("did you mean `{constant}`?")).maybe_fixed_by(
            format!("write `{constant}`"),
            at.span,
            constant,
        ),
        None => finding,
    }
}

/// Reports a path outside of the folder that a tool with `:base project` works in.
pub(in crate::spec) fn outside_base(at: Location, path: &str) -> Diagnostic {
    let path = super::quoted(path);
    Diagnostic::new(&WRONG_VALUE, at, format!("with `:base project`, a relative path cannot begin outside of the project: {path}"))
}

/// Reports a hidden path that a tool with `:base project` may not write.
pub(in crate::spec) fn hidden_in_base(at: Location, path: &str) -> Diagnostic {
    let path = super::quoted(path);
    Diagnostic::new(&WRONG_VALUE, at, format!("with `:base project`, hidden files of the project cannot be written: {path}"))
}

/// Reports a value that may be an API key. The message does not repeat it.
pub(in crate::spec) fn key_variable(at: Location) -> Diagnostic {
    Diagnostic::new(&WRONG_VALUE, at, "`:api-key-env` takes the name of an environment variable").note(
        "keys do not belong in files; export the key as an environment variable and write its name here",
    )
}
