//! Arguments that break a schema, with the place in the spec that says so.

use serde_json::Value;

use super::locate::locate_near;
use super::{ToolEntry, Violation};
use crate::spec::Tool;
use crate::text::Span;

/// One way in which a call breaks its tool's schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Breach {
    /// What is wrong, and where in the arguments.
    pub violation: Violation,
    /// What in the tool's source asks for something else: a keyword of an argument, or the argument that is missing; the
    /// tool's name where it is the tool as a whole.
    pub span: Span,
    /// What stands there in the arguments; `None`: it is missing.
    pub value: Option<Value>,
}

/// Every way in which `arguments` break the schema of `tool`, whose compiled form is `entry`, up to twenty.
pub fn breaches(tool: &Tool, entry: &ToolEntry, arguments: &Value) -> Vec<Breach> {
    let found = entry.validator.explained(arguments);
    let breach = |found: super::validate::Explained| {
        let argument = found.missing.as_ref().filter(|_| found.instance.is_empty());
        let argument =
            argument.and_then(|name| tool.arguments.iter().find(|known| known.name.value == *name));
        let span = argument.map_or_else(|| locate_near(tool, &found.schema), |argument| argument.name.span);
        let value = if found.missing.is_some() { None } else { arguments.pointer(&found.instance).cloned() };
        Breach { violation: found.violation, span, value }
    };
    found.into_iter().map(breach).collect()
}
