//! Values of the wrong kind. `arguments`, `schema` and `ask` contain the findings about the values of `:args`, schemas and
//! asks.

pub(in crate::spec) mod arguments;
pub(in crate::spec) mod ask;
pub(in crate::spec) mod schema;

use crate::diagnostic::{Diagnostic, Edit, rule};
use crate::spec::keywords::TYPES;
use crate::spec::nearest;
use crate::spec::reference::{Key, KeyValue};
use crate::syntax::{Datum, DatumKind};
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
    ///
    /// A JSON array such as the value of `:enum`, `:required` or `:anyOf` is a vector of constants, strings or schemas.
    /// Emacs interprets a list as a plist and rejects it, and it rejects symbols in the vector too. gptel then fails when
    /// it sends the first request, and all tools of the request fail with it. Only `:args` is a list, of plists with
    /// `:name`.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :enum ("fast" "slow"))))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :enum ["fast" "slow"])))
    /// ```
    ///
    /// A schema is a plist such as `(:type string)`; the name of a type alone is not a schema. `:properties` is a JSON
    /// object with the names as keys: `(:first (:type string) :second (:type number))`. Other wrong values, such as a
    /// string for `:minLength`, are sent unchanged and make the schema invalid: OpenAI, Anthropic and Gemini validate
    /// tools and reject the request.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "Some x." :type array :items string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "Some x." :type array :items (:type string))))
    /// ```
    pub(crate) WRONG_VALUE, "DT113", "wrong-value", Error
}

/// `found` is the kind of the value, such as `a string`, or the value in backticks.
pub(in crate::spec) fn finding(at: Location, key: &str, expected: &str, found: &str) -> Diagnostic {
    Diagnostic::new(&WRONG_VALUE, at, format!("`:{key}` takes {expected}, found {found}"))
}

/// Reports a value that is not a vector. A list whose elements are all `fitting` is fixed.
pub(in crate::spec) fn vector(
    at: Location,
    key: &str,
    expected: &str,
    found: &Datum,
    is_fitting: impl Fn(&Datum) -> bool,
) -> Diagnostic {
    let finding = finding(at, key, expected, found.describe());
    match &found.kind {
        DatumKind::List(items) if items.iter().all(is_fitting) => super::as_vector(finding, found),
        _ => finding,
    }
}

/// Fixes all `wrong` elements of a vector, if each can be written correctly. Only the first one is reported.
fn fixed_elements<'d>(
    first: Diagnostic,
    title: &str,
    wrong: impl Iterator<Item = &'d Datum>,
    written: impl Fn(&Datum) -> Option<String>,
) -> Diagnostic {
    let edit = |item: &Datum| Some(Edit { span: item.span, replacement: written(item)? });
    match wrong.map(edit).collect() {
        Some(edits) => first.fixed_by_edits(title, edits),
        None => first,
    }
}

/// Reports the keyword `word`, with its colon, in the position of a value.
pub(in crate::spec) fn keyword(at: Location, key: &Key, word: &str) -> Diagnostic {
    let plain = word.strip_prefix(':').unwrap_or(word);
    let (expected, words): (&str, &[&str]) = match key.value {
        KeyValue::Type => ("a symbol", &TYPES),
        KeyValue::Words(words) => ("a symbol", words),
        KeyValue::Text => ("a string", &[]),
        _ => ("a value", &[]),
    };
    let finding = finding(at, key.name, expected, &format!("the keyword `{word}`"));
    if words.contains(&plain) {
        return finding.fixed_by(format!("write `{plain}`"), at.span, plain);
    }
    let constant = match plain {
        "true" | "t" => Some("t"),
        _ => nearest(word, [":json-false", ":false", ":null", ":json-null"]),
    };
    match constant.filter(|_| expected == "a value") {
        Some(constant) => finding.did_you_mean(at.span, constant),
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
