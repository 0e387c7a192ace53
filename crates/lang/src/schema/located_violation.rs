//! Schema violations with their location in the spec.

use serde_json::Value;

use super::locate::locate_near;
use super::{ToolEntry, Violation};
use crate::spec::Tool;
use crate::text::Span;

/// A violation of a tool's schema, with the spec source that it violates.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedViolation {
    /// The violation and its path in the arguments.
    pub violation: Violation,
    /// The violated part of the tool's source: a keyword of an argument, the missing argument, or the tool's name if the
    /// violation concerns the whole tool.
    pub span: Span,
    /// The invalid value in the arguments; `None` if it is missing.
    pub value: Option<Value>,
}

/// Returns the violations of the schema of `tool` in `arguments`, at most twenty. `entry` is the compiled `tool`.
pub fn locate_violations(tool: &Tool, entry: &ToolEntry, arguments: &Value) -> Vec<LocatedViolation> {
    let found = entry.validator.detailed_violations(arguments);
    let locate = |found: super::validate::DetailedViolation| {
        let argument = found.missing.as_ref().filter(|_| found.instance.is_empty());
        let argument =
            argument.and_then(|name| tool.arguments.iter().find(|known| known.name.value == *name));
        let span = argument.map_or_else(|| locate_near(tool, &found.schema), |argument| argument.name.span);
        let value = if found.missing.is_some() { None } else { arguments.pointer(&found.instance).cloned() };
        LocatedViolation { violation: found.violation, span, value }
    };
    found.into_iter().map(locate).collect()
}
