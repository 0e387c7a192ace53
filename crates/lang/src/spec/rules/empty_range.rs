use crate::diagnostic::{Diagnostic, rule};
use crate::spec::JsonKind;
use crate::spec::keywords;
use crate::spec::schema::Schema;
use crate::text::Span;

rule! {
    /// bounds that exclude all values
    ///
    /// The lower bound is above the upper bound, so no value is valid.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer :minimum 10 :maximum 1)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer :minimum 1 :maximum 10)))
    /// ```
    pub(crate) EMPTY_RANGE, "DT225", "empty-range", Error
}

/// Lower and upper bounds, and whether they exclude the bound itself.
const PAIRS: [(&str, &str, bool); 8] = [
    ("minimum", "maximum", false),
    ("minimum", "exclusiveMaximum", true),
    ("exclusiveMinimum", "maximum", true),
    ("exclusiveMinimum", "exclusiveMaximum", true),
    ("minLength", "maxLength", false),
    ("minItems", "maxItems", false),
    ("minContains", "maxContains", false),
    ("minProperties", "maxProperties", false),
];

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    for (lower, upper, excludes) in PAIRS {
        let (Some((low, low_at)), Some((high, high_at))) = (bound(schema, lower), bound(schema, upper)) else {
            continue;
        };
        // A bound has no effect on other types; that is reported by another rule.
        let types = schema.types();
        let on = keywords::find(lower).map_or(&[][..], |keyword| keyword.on);
        if !types.is_empty() && !types.iter().any(|name| on.contains(name)) {
            continue;
        }
        let is_empty = low > high || (excludes && low >= high);
        if is_empty {
            let (later, earlier) = if low_at.start > high_at.start { (low_at, high_at) } else { (high_at, low_at) };
            let message = format!("no value is between `:{lower} {low}` and `:{upper} {high}`");
            findings.push(
                Diagnostic::new(&EMPTY_RANGE, schema.at(later), message).with_label_at(earlier, "the other bound"),
            );
        }
    }
}

fn bound(schema: &Schema<'_>, key: &str) -> Option<(f64, Span)> {
    let member = schema.get(key)?;
    match &member.value.kind {
        JsonKind::Number(number) => Some((number.as_f64()?, member.span())),
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::String(_) | JsonKind::Array(_) | JsonKind::Object(_) => None,
    }
}
