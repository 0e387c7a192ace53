use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a demand on all parameters together that a spec cannot make
    ///
    /// A spec names its arguments and says which must be given. What a schema demands of the arguments as a whole (`anyOf`, `dependentRequired`,
    /// `minProperties` …) is left out, and calls that break it are no longer refused: say it in the description, or check it in the script.
    ///
    /// ```json fails
    /// {"name": "find", "description": "Find it.", "input_schema": {"type": "object", "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
    ///   "anyOf": [{"required": ["id"]}, {"required": ["name"]}]}}
    /// ```
    ///
    /// ```json repaired
    /// {"name": "find", "description": "Find it. Give an id or a name.", "input_schema": {"type": "object",
    ///   "properties": {"id": {"type": "string"}, "name": {"type": "string"}}}}
    /// ```
    pub(crate) ROOT_KEYWORD, "DT606", "root-keyword", Warning
}

/// One finding for all of a tool: where each stands and its name.
pub(crate) fn finding(at: Location, keys: &[(String, Span)]) -> Diagnostic {
    let names = super::left_out::names(keys);
    let message = format!("a spec cannot say {names} of all arguments together; left out");
    let finding = Diagnostic::new(&ROOT_KEYWORD, at, message);
    let others = keys.iter().skip(1);
    others.fold(finding, |finding, (key, span)| finding.and_at(*span, format!("`{key}` is left out, too")))
}
