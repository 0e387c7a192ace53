use crate::diagnostic::{Diagnostic, rule};
use crate::spec::JsonKind;
use crate::spec::keywords::{self, ValueKind};
use crate::spec::schema::Schema;

rule! {
    /// nil that is sent as an empty object
    ///
    /// In JSON, nil is `{}`, not false and not an empty array. `:default nil` of a boolean is sent as `"default": {}`,
    /// and `:additionalProperties nil` is a schema that allows everything. APIs reject `{}` if they expect a string or
    /// a number.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type boolean :default nil :optional t)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type boolean :default :json-false :optional t)))
    /// ```
    pub(crate) NIL_VALUE, "DT243", "nil-value", Warning
}

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    for member in schema.members {
        let is_nil = matches!(&member.value.kind, JsonKind::Object(members) if members.is_empty());
        let key = member.key.as_str();
        let Some(keyword) = keywords::find(key).filter(|_| is_nil) else { continue };
        let instead = match (keyword.value_kind, schema.type_name()) {
            (ValueKind::Flag, _) => Some(":json-false"),
            (ValueKind::Schema, _) if key.starts_with("additional") || key.starts_with("unevaluated") => {
                Some(":json-false")
            }
            (ValueKind::Vector, _) => Some("[]"),
            (ValueKind::Own, _) if key == "required" && schema.is_written("properties") => Some("[]"),
            (ValueKind::Any, Some("boolean")) if key == "default" => Some(":json-false"),
            (ValueKind::Any, Some("array")) if key == "default" => Some("[]"),
            (ValueKind::Any, Some("string" | "number" | "integer")) if key == "default" => None,
            (ValueKind::Text | ValueKind::Count | ValueKind::Number | ValueKind::Positive, _) => None,
            (
                ValueKind::Schema | ValueKind::Schemas | ValueKind::Named | ValueKind::Own | ValueKind::Any,
                _,
            ) => continue,
        };
        let what = if keyword.value_kind == ValueKind::Schema { ", which allows everything" } else { "" };
        let finding = Diagnostic::new(
            &NIL_VALUE,
            schema.at(member.value.span),
            format!("`:{key} nil` is sent as {{}}{what}"),
        );
        findings.push(match instead {
            Some(value) => finding.fixed_by(format!("write `{value}`"), member.value.span, value),
            None => finding.note("remove the key if it has no value"),
        });
    }
}
