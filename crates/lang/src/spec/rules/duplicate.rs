use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Label, Severity, rule};
use crate::spec::schema::Schema;
use crate::spec::{JsonKind, same_key};
use crate::text::{Location, Span};

rule! {
    /// a duplicate key, name or value
    ///
    /// Emacs uses the first of two equal keys, but most JSON parsers use the last one, so the behaviour of a server is
    /// undefined. deftool sends the first one and drops the others.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time." :description "Tell the date.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// Equal names of tools, workers or arguments are an error: names of tools in a request must be unique, and an
    /// argument is a key of a JSON object. In Emacs Lisp, tools of different categories may have the same name; a
    /// request can only contain one of them. A project has at most one worker with `:default t`.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// (deftool :name "now" :description "Tell the date.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// (deftool :name "today" :description "Tell the date.")
    /// ```
    ///
    /// A duplicate in a list has no effect. Often a different value was intended. JSON Schema does not allow duplicates
    /// in `:enum`, `:required` and `:type`, and OpenAI and Gemini reject them.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :enum ["a" "b" "a"])))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :enum ["a" "b"])))
    /// ```
    pub(crate) DUPLICATE, "DT106", "duplicate", Warning
}

/// Reports a duplicate that has no effect. `what` names it with its kind.
pub(in crate::spec) fn finding(at: Location, what: &str, first: Span) -> Diagnostic {
    Diagnostic::new(&DUPLICATE, at, format!("duplicate {what}")).with_label_at(first, "first used here")
}

/// Reports a second definition of a name: an error. `what`: `tool`, `worker`, `default worker` or `argument`.
pub fn definition(at: Location, what: &str, name: &str, first: Location) -> Diagnostic {
    let mut finding = Diagnostic::new(&DUPLICATE, at, format!("duplicate {what} `{name}`"));
    finding.severity = Severity::Error;
    finding.labels.push(Label { location: first, message: String::from("first defined here") });
    finding
}

/// Reports an ask with the prompt and the history of another.
pub(crate) fn ask(at: Location, first: Location) -> Diagnostic {
    let mut finding = Diagnostic::new(&DUPLICATE, at, "duplicate ask");
    finding.labels.push(Label { location: first, message: String::from("first asked here") });
    finding
}

/// Reports the duplicates in `:type`, `:enum` and `:required`.
pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    for key in ["type", "enum", "required"] {
        let Some(JsonKind::Array(values)) = schema.get(key).map(|member| &member.value.kind) else { continue };
        let mut seen = HashMap::new();
        let mut before = None;
        for value in values {
            let same = same_key(value);
            if let Some(first) = seen.get(&same) {
                let what = format!("value {} in `:{key}`", value.to_value());
                // The fix includes the separator only if it is a single space.
                let gap = before.filter(|end| *end + 1 == value.span.start);
                let cut = Span { start: gap.unwrap_or(value.span.start), end: value.span.end };
                findings.push(finding(schema.at(value.span), &what, *first).fixed_by("remove it", cut, ""));
            } else {
                seen.insert(same, value.span);
            }
            before = Some(value.span.end);
        }
    }
}
