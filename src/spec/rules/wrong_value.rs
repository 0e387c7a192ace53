use crate::diagnostic::{Diagnostic, rule};
use crate::spec::keywords::TYPES;
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// a value of the wrong kind for its key
    ///
    /// What stands there cannot mean what the key is for: a number where a text belongs, a word that is none of the known
    /// ones, a duration without its unit.
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

/// `found`: its kind, as in `a string`, or itself in backquotes.
pub(in crate::spec) fn finding(at: Location, key: &str, expected: &str, found: &str) -> Diagnostic {
    Diagnostic::new(&WRONG_VALUE, at, format!("`:{key}` takes {expected}, found {found}"))
}

/// The keyword `word`, with its colon, where a value belongs.
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

/// What stands there may be a key: it is not repeated.
pub(in crate::spec) fn key_variable(at: Location) -> Diagnostic {
    Diagnostic::new(&WRONG_VALUE, at, "`:api-key-env` takes the name of an environment variable")
        .note("a key does not belong in a file; export it and name the variable")
}
