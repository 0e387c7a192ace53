//! Sorts the calls of a reply by kind of tool, and validates their arguments.

use std::sync::Arc;

use deftool_lang::schema::{Arguments, ToolKind, ToolSet, Violation};
use deftool_lang::spec::nearest;
use serde_json::Value;

use super::run::CallPlan;
use crate::{RawArguments, RawCall};

/// The calls of a reply by kind of tool, each in order.
pub(super) struct Partition<'a> {
    pub(super) exit: Vec<&'a RawCall>,
    pub(super) normal: Vec<&'a RawCall>,
    pub(super) unknown: Vec<&'a RawCall>,
}

/// Sorts the calls of a reply by kind of tool.
pub(super) fn partition<'a>(calls: &'a [RawCall], tools: &ToolSet) -> Partition<'a> {
    let mut sorted = Partition { exit: Vec::new(), normal: Vec::new(), unknown: Vec::new() };
    for call in calls {
        match tools.get(&call.name).map(|tool| tool.kind) {
            Some(ToolKind::Exit) => sorted.exit.push(call),
            Some(ToolKind::Normal) => sorted.normal.push(call),
            None => sorted.unknown.push(call),
        }
    }
    sorted
}

/// A normal call after validation against its tool's schema.
pub(super) enum Checked {
    /// The call can run.
    Valid { arguments: Arguments, plan: CallPlan },
    /// The call cannot run.
    Invalid {
        /// The arguments if they are an object, otherwise the received text as a string.
        arguments: Arc<Value>,
        /// One line per violation, with the tool's name and the path.
        detail: String,
    },
}

/// Validates a call's arguments against the schema of tool `name`.
pub(super) fn check(name: &str, arguments: &RawArguments, tools: &ToolSet) -> Checked {
    match arguments {
        RawArguments::Malformed { text, error, .. } => Checked::Invalid {
            arguments: Arc::new(Value::String(text.clone())),
            detail: format!("{name}: the arguments are not a JSON object: {error}"),
        },
        RawArguments::Object { value } => {
            let Some(tool) = tools.get(name) else {
                return Checked::Invalid {
                    arguments: Arc::clone(value.shared()),
                    detail: format!("unknown tool `{name}`"),
                };
            };
            match tool.accept(value.clone()) {
                Ok(arguments) => {
                    let needs_approval = tool.needs_approval(&arguments);
                    let plan = CallPlan {
                        timeout: tool.timeout,
                        needs_approval,
                        effect: tool.effect,
                        text_result: tool.text_results,
                    };
                    Checked::Valid { arguments, plan }
                }
                Err((arguments, violations)) => Checked::Invalid {
                    arguments: Arc::clone(arguments.shared()),
                    detail: violations_of(name, &violations),
                },
            }
        }
    }
}

/// Returns the arguments of a call of exit tool `name` for its signal, and the reason if they are invalid.
pub(super) fn check_exit(name: &str, arguments: &RawArguments, tools: &ToolSet) -> (Value, Option<String>) {
    match arguments {
        RawArguments::Malformed { text, error, .. } => (Value::String(text.clone()), Some(error.clone())),
        RawArguments::Object { value } => match tools.get(name).map(|tool| tool.accept(value.clone())) {
            Some(Ok(arguments)) => (arguments.to_value(), None),
            Some(Err((arguments, violations))) => {
                (arguments.to_value(), Some(violations_of(name, &violations)))
            }
            None => (value.to_value(), None),
        },
    }
}

/// Returns one line per violation, with the tool's name and the path.
fn violations_of(name: &str, violations: &[Violation]) -> String {
    let lines = violations.iter().map(|Violation { path, message }| format!("{name}{path}: {message}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Maximum number of unknown names in a reply for which similar tools are searched.
const MAX_SUGGESTED: usize = 8;

/// Formats unknown tool names for a message, each with the most similar tool.
pub(super) fn unknown_names<'n>(names: impl Iterator<Item = &'n str>, tools: &ToolSet) -> String {
    let meant = |nth, name: &str| {
        let all = tools.iter().map(|tool| tool.name.as_str());
        (nth < MAX_SUGGESTED).then(|| nearest(name, all)).flatten()
    };
    let formatted = names.enumerate().map(|(nth, name)| match meant(nth, name) {
        Some(meant) => format!("`{name}` (did you mean `{meant}`?)"),
        None => format!("`{name}`"),
    });
    formatted.collect::<Vec<_>>().join(", ")
}
