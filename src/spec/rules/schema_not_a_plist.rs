use crate::diagnostic::{Diagnostic, rule};
use crate::diagnostic::Severity;
use crate::spec::keywords::TYPES;
use crate::syntax::{Datum, DatumKind};
use crate::text::Location;

rule! {
    /// something else where a schema belongs
    ///
    /// `:items`, the values of `:properties`, the alternatives of `:anyOf` and their like are schemas: plists such as `(:type string)`. A type's
    /// name alone is none. Emacs refuses the symbol; what it does write, every API refuses.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "Some x." :type array :items string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "Some x." :type array :items (:type string))))
    /// ```
    pub(crate) SCHEMA_NOT_A_PLIST, "DT223", "schema-not-a-plist", Error
}

/// What Emacs writes all the same is a warning.
pub(in crate::spec) fn finding(at: Location, key: &str, found: &Datum) -> Diagnostic {
    let message =
        format!("`:{key}` takes a schema plist such as `(:type string)`, found {}", found.describe());
    let mut finding = Diagnostic::new(&SCHEMA_NOT_A_PLIST, at, message);
    if matches!(found.kind, DatumKind::Vector(_) | DatumKind::String(_) | DatumKind::Number(_)) {
        finding.severity = Severity::Warning;
    }
    match &found.kind {
        DatumKind::Symbol(word) | DatumKind::String(word) if TYPES.contains(&word.as_str()) => {
            let schema = format!("(:type {word})");
            finding.fixed_by(format!("write `{schema}`"), at.span, schema)
        }
        DatumKind::Vector(_) if key == "items" => {
            finding.note("one schema holds for every element; a schema for each position is `:prefixItems`")
        }
        _ => finding,
    }
}
