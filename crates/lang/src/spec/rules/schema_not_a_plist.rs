use crate::diagnostic::{Diagnostic, rule};
use crate::diagnostic::{Edit, Fix, Severity};
use crate::spec::keywords::TYPES;
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, SourceId};

rule! {
    /// a value that is not a schema
    ///
    /// `:items`, the values of `:properties`, the alternatives of `:anyOf` and similar keywords take schemas: plists
    /// such as `(:type string)`. The name of a type alone is not a schema. Emacs rejects the symbol, and APIs reject
    /// other values.
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

/// Reports the value. A property with a value that Emacs can write as JSON is a warning: only the property is lost.
pub(in crate::spec) fn finding(at: Location, key: &str, found: &Datum) -> Diagnostic {
    let message =
        format!("`:{key}` takes a schema plist such as `(:type string)`, found {}", found.describe());
    let mut finding = Diagnostic::new(&SCHEMA_NOT_A_PLIST, at, message);
    let is_writable = match &found.kind {
        DatumKind::Vector(items) => is_writable(items),
        DatumKind::String(_) | DatumKind::Number(_) => true,
        _ => false,
    };
    if is_writable && key != "items" {
        finding.severity = Severity::Warning;
    }
    match &found.kind {
        DatumKind::Symbol(word) | DatumKind::String(word) if TYPES.contains(&word.as_str()) => {
            let schema = format!("(:type {word})");
            finding.fixed_by(format!("write `{schema}`"), at.span, schema)
        }
        DatumKind::Vector(_) if key == "items" => {
            finding.note("`:items` is one schema for all elements; use `:prefixItems` for one schema per position")
        }
        _ if ["required", "type", "description", "additionalProperties"].contains(&key) => {
            finding.note(format!("`{key}` is a property here; write keywords of the object next to `:properties`"))
        }
        _ => finding,
    }
}

/// Reports words in a vector of schemas. Only the first one is reported, but all are fixed.
pub(in crate::spec) fn in_vector(source: SourceId, key: &str, items: &[Datum]) -> Option<Diagnostic> {
    let mut words = items.iter().filter(|item| match &item.kind {
        DatumKind::Symbol(word) => word != "t",
        DatumKind::String(_) => true,
        _ => false,
    });
    let first = words.next()?;
    let mut finding = finding(Location { source, span: first.span }, key, first);
    let all = || std::iter::once(first).chain(words.clone());
    if all().any(|item| matches!(item.kind, DatumKind::Symbol(_))) {
        finding.severity = Severity::Error;
    }
    let edit = |item: &Datum| match &item.kind {
        DatumKind::Symbol(word) | DatumKind::String(word) if TYPES.contains(&word.as_str()) => {
            Some(Edit { span: item.span, replacement: format!("(:type {word})") })
        }
        _ => None,
    };
    finding.fix = all().map(edit).collect::<Option<Vec<_>>>().map(|edits| Fix {
        title: String::from("write schemas"),
        edits,
        is_safe: true,
    });
    Some(finding)
}

/// Whether Emacs can write a vector of these elements, without inspecting nested values.
pub(in crate::spec) fn is_writable(items: &[Datum]) -> bool {
    !items.iter().any(|item| matches!(&item.kind, DatumKind::Symbol(word) if word != "t"))
}
