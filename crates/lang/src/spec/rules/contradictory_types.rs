use crate::diagnostic::{Diagnostic, rule};
use crate::spec::JsonKind;
use crate::spec::keywords::TYPES;
use crate::spec::schema::Schema;

rule! {
    /// :allOf with types that exclude each other
    ///
    /// A value must satisfy all schemas of `:allOf` and the enclosing schema, but it cannot have two types.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :allOf [(:type string) (:type integer)])))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :anyOf [(:type string) (:type integer)])))
    /// ```
    pub(crate) CONTRADICTORY_TYPES, "DT247", "contradictory-types", Error
}

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    let Some(JsonKind::Array(parts)) = schema.get("allOf").map(|member| &member.value.kind) else { return };
    let mut before = schema.type_name();
    for part in parts {
        let Some(member) = part.get("type") else { continue };
        let Some(name) = member.value.as_str() else { continue };
        match before {
            Some(first) if !agree(first, name) => {
                let message = format!("no value is both {first} and {name}");
                findings.push(
                    Diagnostic::new(&CONTRADICTORY_TYPES, schema.at(member.value.span), message)
                        .note("use `:anyOf` for alternatives"),
                );
                return;
            }
            Some(_) => {}
            None => before = Some(name),
        }
    }
}

fn agree(one: &str, other: &str) -> bool {
    let is_number = |name: &str| matches!(name, "number" | "integer");
    let is_known = |name: &str| TYPES.contains(&name);
    one == other || (is_number(one) && is_number(other)) || !is_known(one) || !is_known(other)
}
