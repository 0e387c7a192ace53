use crate::diagnostic::{Diagnostic, rule};
use crate::spec::JsonKind;
use crate::spec::schema::Schema;

rule! {
    /// :exclusiveMinimum or :exclusiveMaximum as a flag
    ///
    /// In draft 4 of JSON Schema this keyword was a flag for `:minimum`. Since draft 6 it is the bound itself, and
    /// APIs and validators expect a number.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type number :minimum 0 :exclusiveMinimum t)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type number :exclusiveMinimum 0)))
    /// ```
    pub(crate) BOOLEAN_BOUND, "DT236", "boolean-bound", Error
}

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    for (key, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        let Some(member) = schema.get(key) else { continue };
        if let JsonKind::Bool(_) = member.value.kind {
            let message =
                format!("`:{key}` must be a number, the bound itself, since draft 6 of JSON Schema");
            findings.push(
                Diagnostic::new(&BOOLEAN_BOUND, schema.at(member.span()), message)
                    .note(format!("write `:{key} 0` instead of `:{bound} 0 :{key} t`")),
            );
        }
    }
}
