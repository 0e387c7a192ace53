use crate::diagnostic::{Diagnostic, rule};
use crate::diagnostic::{Edit, Fix, Severity};
use crate::spec::keywords::TYPES;
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, SourceId};

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
    let is_writable = match &found.kind {
        DatumKind::Vector(items) => is_writable(items),
        DatumKind::String(_) | DatumKind::Number(_) => true,
        _ => false,
    };
    if is_writable {
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
        _ if ["required", "type", "description", "additionalProperties"].contains(&key) => {
            finding.note(format!("here `{key}` is a property; what is said of the object stands beside `:properties`"))
        }
        _ => finding,
    }
}

/// Words in a vector of schemas; the first of them is told, and all are mended.
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

/// Whether Emacs writes a vector of these, for all that is known without looking into them.
pub(in crate::spec) fn is_writable(items: &[Datum]) -> bool {
    !items.iter().any(|item| matches!(&item.kind, DatumKind::Symbol(word) if word != "t"))
}
