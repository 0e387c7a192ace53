use crate::diagnostic::{Diagnostic, rule};
use crate::spec::schema::{Schema, is_of_type};
use crate::spec::{JsonKind, is_same};

rule! {
    /// a :const that the rest of its schema excludes
    ///
    /// A value must satisfy every keyword. A constant that does not have the `:type` or is not in the `:enum` is never
    /// valid.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :const 1)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :const "1")))
    /// ```
    pub(crate) CONST_MISFIT, "DT233", "const-misfit", Error
}

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    let Some(member) = schema.get("const") else { return };
    let types = schema.types();
    let mut report = |message: String| {
        findings.push(Diagnostic::new(&CONST_MISFIT, schema.at(member.value.span), message));
    };
    if !types.is_empty() && !types.iter().any(|name| is_of_type(&member.value.kind, name)) {
        report(format!("the `:const` is not of type {}", types.join(" or ")));
    } else if let Some(JsonKind::Array(values)) = schema.get("enum").map(|member| &member.value.kind) {
        let value = member.value.to_value();
        if !values.iter().any(|known| is_same(&known.to_value(), &value)) {
            report(String::from("the `:const` is not in the `:enum`"));
        }
    }
}
