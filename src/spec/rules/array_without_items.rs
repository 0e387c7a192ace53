use crate::diagnostic::{Diagnostic, rule};
use crate::spec::schema::Schema;

rule! {
    /// an array that does not say what it holds
    ///
    /// OpenAI and Gemini refuse an array schema without `items`, and with it every tool of the request. Others leave the model to guess.
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
    // What holds `:properties` is no array: `keyword-without-effect` tells it.
    let told = ["items", "prefixItems", "contains", "$ref", "enum", "const", "properties"];
    if !schema.types().contains(&"array") || told.into_iter().any(|key| schema.is_written(key)) {
        return;
    }
    let message = "an array without `:items` does not say what it holds";
    findings.push(
        Diagnostic::new(&ARRAY_WITHOUT_ITEMS, schema.at(schema.type_span()), message)
            .note("OpenAI and Gemini refuse it; add `:items (:type string)` or the like"),
    );
}
