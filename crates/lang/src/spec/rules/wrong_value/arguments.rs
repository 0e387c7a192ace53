//! Values of `:args` and `:optional`.

use super::{WRONG_VALUE, finding};
use crate::diagnostic::{Diagnostic, Edit, Severity};
use crate::spec::rules::quoted;
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, Span};

/// Reports an `:args` value that is not a list.
pub(in crate::spec) fn args(at: Location, found: &Datum) -> Diagnostic {
    not_arguments(at, found.describe()).note("write `:args ((:name \"…\" :type string) …)`")
}

fn not_arguments(at: Location, found: &str) -> Diagnostic {
    finding(at, "args", "a list of argument plists", found)
}

/// Reports an `:args` value that is a single plist: an argument, or the JSON Schema of all arguments.
pub(in crate::spec) fn single(at: Location, items: &[Datum]) -> Diagnostic {
    let has = |key: &str| items.iter().step_by(2).any(|item| matches!(&item.kind, DatumKind::Keyword(word) if word == key));
    if has(":name") {
        let edit = |at: u32, replacement: &str| Edit {
            span: Span { start: at, end: at },
            replacement: replacement.to_owned(),
        };
        return not_arguments(at, "a single plist").fixed_by_edits(
            "wrap it in one more pair of parentheses",
            vec![edit(at.span.start, "("), edit(at.span.end, ")")],
        );
    }
    let is_map = items.iter().skip(1).step_by(2).all(|item| matches!(item.kind, DatumKind::List(_)));
    if has(":properties") || has(":type") {
        not_arguments(at, "an object schema").note("write each of its `:properties` as an argument: `((:name \"…\" :type …) …)`")
    } else if is_map {
        not_arguments(at, "a plist of properties").note("write each as an argument with its name: `((:name \"…\" :type …) …)`")
    } else {
        not_arguments(at, "a single plist").note("wrap it in one more pair of parentheses")
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
        return Diagnostic::new(&WRONG_VALUE, at, message);
    };
    let meant = if word == "name" { String::from(":name") } else { format!(":name {}", quoted(word)) };
    let message = format!("expected a key such as `:name`, found `{word}`");
    Diagnostic::new(&WRONG_VALUE, Location { span: *span, ..at }, message).maybe_fixed_by(
        format!("write `{meant}`"),
        *span,
        meant,
    )
}

/// Reports an `:optional` value that is neither t nor nil. For Emacs, every value but nil is true.
pub(in crate::spec) fn optional(at: Location, found: &Datum) -> Diagnostic {
    let mut finding = finding(at, "optional", "t or nil", found.describe())
        .note("every value but nil makes an argument optional, including this one");
    finding.severity = Severity::Warning;
    let is_no = match &found.kind {
        DatumKind::Keyword(word) => word == ":json-false" || word == ":false" || word == ":null",
        DatumKind::String(word) => matches!(word.as_str(), "false" | "no" | "nil" | ""),
        DatumKind::Symbol(word) => matches!(word.as_str(), "false" | "no"),
        _ => false,
    };
    if is_no {
        finding.maybe_fixed_by("write `nil`", at.span, "nil")
    } else {
        finding.fixed_by("write `t`", at.span, "t")
    }
}
