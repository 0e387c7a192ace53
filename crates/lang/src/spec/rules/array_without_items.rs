use crate::diagnostic::{Diagnostic, rule};
use crate::spec::schema::Schema;

rule! {
    /// an array without a schema for its items
    ///
    /// OpenAI and Gemini reject an array schema without `items`, and with it all tools of the request. With other APIs
    /// the model has to guess the element type.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "Some x." :type array)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "Some x." :type array :items (:type string))))
    /// ```
    pub(crate) ARRAY_WITHOUT_ITEMS, "DT209", "array-without-items", Warning
}

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    // A schema with `:properties` is reported by `keyword-without-effect`.
    let exempt = ["items", "prefixItems", "contains", "$ref", "enum", "const", "properties"];
    if !schema.has_type("array") || exempt.into_iter().any(|key| schema.is_written(key)) {
        return;
    }
    let message = "missing `:items` for the array";
    findings.push(
        Diagnostic::new(&ARRAY_WITHOUT_ITEMS, schema.at(schema.type_span()), message)
            .note("OpenAI and Gemini reject such an array; add `:items (:type string)` or another schema"),
    );
}
