use crate::diagnostic::{Diagnostic, rule};
use crate::diagnostic::{Edit, Fix};
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, Span};

rule! {
    /// names of properties without their colon
    ///
    /// Emacs writes a symbol as a key all the same, but what walks plists by their keywords passes it by, gptel's handling of `:type` symbols
    /// among them.
    ///
    /// ```el fails
    /// (gptel-make-tool :name "a" :description "Do a." :args '((:name "x" :description "An x." :type object :properties (id (:type integer)))))
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "a" :description "Do a." :args '((:name "x" :description "An x." :type object :properties (:id (:type integer)))))
    /// ```
    pub(crate) BARE_KEY, "DT249", "bare-key", Warning
}

/// `at` is the whole plist, `items` what is in it.
pub(in crate::spec) fn finding(at: Location, items: &[Datum]) -> Diagnostic {
    let bare: Vec<&Datum> =
        items.iter().step_by(2).filter(|key| matches!(key.kind, DatumKind::Symbol(_))).collect();
    let span = bare.first().map_or(at.span, |key| key.span);
    let message = match bare.first().map(|key| &key.kind) {
        Some(DatumKind::Symbol(word)) => format!("`{word}` is a key without its colon"),
        Some(_) | None => String::from("a key without its colon"),
    };
    let colon = |key: &&Datum| Edit {
        span: Span { start: key.span.start, end: key.span.start },
        replacement: String::from(":"),
    };
    let edits = bare.iter().map(colon).collect();
    let mut finding = Diagnostic::new(&BARE_KEY, Location { span, ..at }, message);
    finding.fix = Some(Fix { title: String::from("write the colon"), edits, is_safe: true });
    finding
}

/// A keyword of a schema.
pub(in crate::spec) fn keyword(at: Location, word: &str) -> Diagnostic {
    Diagnostic::new(&BARE_KEY, at, format!("`{word}` is a key without its colon")).fixed_by(
        format!("write `:{word}`"),
        at.span,
        format!(":{word}"),
    )
}
