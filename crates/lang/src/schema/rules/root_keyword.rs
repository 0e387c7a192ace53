use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a constraint on all parameters that a spec cannot express
    ///
    /// A spec declares its arguments and which of them are required. Constraints on all arguments together (`anyOf`,
    /// `dependentRequired`, `minProperties` …) are ignored, so calls that violate them are accepted. State the
    /// constraint in the description, or check it in the script.
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

/// Returns one finding for all such keywords of a tool.
pub(crate) fn finding(at: Location, keys: &[(String, Span)]) -> Diagnostic {
    let names = super::left_out::names(keys);
    let message = format!("a spec cannot apply {names} to all arguments together; ignored");
    let finding = Diagnostic::new(&ROOT_KEYWORD, at, message);
    let others = keys.iter().skip(1);
    others.fold(finding, |finding, (key, span)| finding.with_label_at(*span, format!("`{key}` is also ignored")))
}
