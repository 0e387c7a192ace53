use crate::diagnostic::{Diagnostic, Edit, rule};
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, Span};

rule! {
    /// :args that is not a list of argument plists
    ///
    /// gptel reads `:args` as a list of plists. A vector, a single plist or any other value causes a Lisp error or
    /// arguments without a name.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args [(:name "x" :description "An x." :type string)])
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string)))
    /// ```
    pub(crate) ARGS_NOT_A_LIST, "DT201", "args-not-a-list", Error
}

/// Reports an `:args` value that is not a list.
pub(in crate::spec) fn finding(at: Location, found: &Datum) -> Diagnostic {
    let message = format!("`:args` takes a list of argument plists, found {}", found.describe());
    Diagnostic::new(&ARGS_NOT_A_LIST, at, message).note("write `:args ((:name \"…\" :type string) …)`")
}

/// Reports an `:args` value that is a single plist: an argument, or the JSON Schema of all arguments.
pub(in crate::spec) fn single(at: Location, items: &[Datum]) -> Diagnostic {
    let has = |key: &str| items.iter().step_by(2).any(|item| matches!(&item.kind, DatumKind::Keyword(word) if word == key));
    let found = |what: &str| {
        let message = format!("`:args` takes a list of argument plists, found {what}");
        Diagnostic::new(&ARGS_NOT_A_LIST, at, message)
    };
    if has(":name") {
        let edit = |at: u32, replacement: &str| Edit {
            span: Span { start: at, end: at },
            replacement: replacement.to_owned(),
        };
        return found("a single plist").fixed_by_edits(
            "wrap it in one more pair of parentheses",
            vec![edit(at.span.start, "("), edit(at.span.end, ")")],
        );
    }
    let is_map = items.iter().skip(1).step_by(2).all(|item| matches!(item.kind, DatumKind::List(_)));
    if has(":properties") || has(":type") {
        found("an object schema").note("write each of its `:properties` as an argument: `((:name \"…\" :type …) …)`")
    } else if is_map {
        found("a plist of properties").note("write each as an argument with its name: `((:name \"…\" :type …) …)`")
    } else {
        found("a single plist").note("wrap it in one more pair of parentheses")
    }
}

/// Reports an element of `:args` that is not a plist.
pub(in crate::spec) fn element(at: Location, found: &Datum) -> Diagnostic {
    let first = match &found.kind {
        DatumKind::List(items) => items.first(),
        _ => None,
    };
    let Some(Datum { span, kind: DatumKind::Symbol(word) | DatumKind::String(word) }) = first else {
        let message = format!("expected an argument plist `(:name \"…\" :type …)`, found {}", found.describe());
        return Diagnostic::new(&ARGS_NOT_A_LIST, at, message);
    };
    let is_key = word == "name";
    let meant = if is_key { String::from(":name") } else { format!(":name {}", super::quoted(word)) };
    let message = format!("expected a key such as `:name`, found `{word}`");
    Diagnostic::new(&ARGS_NOT_A_LIST, Location { span: *span, ..at }, message).maybe_fixed_by(
        format!("write `{meant}`"),
        *span,
        meant,
    )
}
