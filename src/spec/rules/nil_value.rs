use crate::diagnostic::{Diagnostic, rule};
use crate::spec::JsonKind;
use crate::spec::keywords::{self, Takes};
use crate::spec::schema::Schema;

rule! {
    /// nil where it is sent as an empty object
    ///
    /// In JSON nil is `{}`, neither false nor an empty array: `:default nil` of a boolean is `"default": {}`, and `:additionalProperties nil` is a schema
    /// that allows everything. APIs refuse `{}` where they expect a string or a number.
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
        let instead = match (keyword.takes, schema.type_name()) {
            (Takes::Flag, _) => Some(":json-false"),
            (Takes::Schema, _) if key.starts_with("additional") || key.starts_with("unevaluated") => {
                Some(":json-false")
            }
            (Takes::Vector, _) => Some("[]"),
            (Takes::Own, _) if key == "required" && schema.is_written("properties") => Some("[]"),
            (Takes::Any, Some("boolean")) if key == "default" => Some(":json-false"),
            (Takes::Any, Some("array")) if key == "default" => Some("[]"),
            (Takes::Any, Some("string" | "number" | "integer")) if key == "default" => None,
            (Takes::Text | Takes::Count | Takes::Number | Takes::Positive, _) => None,
            (Takes::Schema | Takes::Schemas | Takes::Named | Takes::Own | Takes::Any, _) => continue,
        };
        let what = if keyword.takes == Takes::Schema { ", which allows everything" } else { "" };
        let finding = Diagnostic::new(
            &NIL_VALUE,
            schema.at(member.value.span),
            format!("`:{key} nil` is sent as {{}}{what}"),
        );
        findings.push(match instead {
            Some(value) => finding.fixed_by(format!("write `{value}`"), member.value.span, value),
            None => finding.note("leave the key out where there is nothing to say"),
        });
    }
}
