use crate::diagnostic::{Diagnostic, rule};
use std::collections::HashMap;

use crate::spec::schema::Schema;
use crate::spec::{JsonKind, same_key};
use crate::text::Span;

rule! {
    /// a duplicate value in :enum, :required or :type
    ///
    /// JSON Schema does not allow duplicates here, and OpenAI and Gemini reject them. Often a different value was
    /// intended.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :enum ["a" "b" "a"])))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :enum ["a" "b"])))
    /// ```
    pub(crate) DUPLICATE_ITEM, "DT222", "duplicate-item", Warning
}

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    for key in ["type", "enum", "required"] {
        let Some(JsonKind::Array(values)) = schema.get(key).map(|member| &member.value.kind) else { continue };
        let mut seen = HashMap::new();
        let mut before = None;
        for value in values {
            let same = same_key(value);
            if let Some(first) = seen.get(&same) {
                let message = format!("duplicate value {} in `:{key}`", value.to_value());
                // The fix includes the separator only if it is a single space.
                let gap = before.filter(|end| *end + 1 == value.span.start);
                let cut = Span { start: gap.unwrap_or(value.span.start), end: value.span.end };
                findings.push(
                    Diagnostic::new(&DUPLICATE_ITEM, schema.at(value.span), message)
                        .with_label_at(*first, "first used here")
                        .fixed_by("remove it", cut, ""),
                );
            } else {
                seen.insert(same, value.span);
            }
            before = Some(value.span.end);
        }
    }
}
