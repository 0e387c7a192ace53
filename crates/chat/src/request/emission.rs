//! Classification and validation of the calls of one reply.

use std::time::Duration;

use deftool_lang::schema::{ToolKind, ToolSet, Violation};
use deftool_lang::spec::nearest;
use serde_json::{Map, Value};

use super::coerce::{coerce_arguments, coerce_call};
use super::hold_back::{Judge, Judgement};
use super::said::Said;
use crate::fallback::{Candidate, TextCall};
use crate::{Message, RawArguments, RawCall};

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
    /// It can run.
    Valid { arguments: Map<String, Value>, timeout: Option<Duration>, needs_approval: bool },
    /// It cannot run.
    Invalid {
        /// The arguments if they are an object, otherwise the received text as a string.
        arguments: Value,
        /// One line per violation, with the tool's name and the path.
        detail: String,
    },
}

/// Validates a call's arguments against the schema of tool `name`.
pub(super) fn check(name: &str, arguments: &RawArguments, tools: &ToolSet) -> Checked {
    match arguments {
        RawArguments::Malformed { text, error, .. } => Checked::Invalid {
            arguments: Value::String(text.clone()),
            detail: format!("{name}: the arguments are not a JSON object: {error}"),
        },
        RawArguments::Object { value } => {
            let Some(tool) = tools.get(name) else {
                return Checked::Invalid {
                    arguments: Value::Object(value.clone()),
                    detail: format!("{name}: no such tool"),
                };
            };
            match tool.accept(Value::Object(value.clone())) {
                Ok(accepted) => {
                    let arguments = match accepted {
                        Value::Object(arguments) => arguments,
                        _ => value.clone(),
                    };
                    let needs_approval = tool.needs_approval(&arguments);
                    Checked::Valid { arguments, timeout: tool.timeout, needs_approval }
                }
                Err((arguments, violations)) => Checked::Invalid {
                    arguments,
                    detail: violations
                        .iter()
                        .map(|Violation { path, message }| format!("{name}{path}: {message}"))
                        .collect::<Vec<_>>()
                        .join("\n"),
                },
            }
        }
    }
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

/// Classifies candidates in a reply's text.
pub(super) struct TextJudge<'a> {
    pub(super) tools: &'a ToolSet,
    pub(super) conversation: &'a [Message],
    /// Texts of users and tools. The conversation is read when the first candidate is found.
    pub(super) said: &'a mut Said,
}

impl Judge for TextJudge<'_> {
    fn may_be_call(&mut self, candidate: &Candidate) -> bool {
        let is_known = |call: &TextCall| self.tools.get(&call.name).is_some();
        candidate.calls.iter().all(is_known) || !candidate.calls.iter().all(|call| call.bare)
    }

    fn judge(&mut self, candidate: &Candidate) -> Judgement {
        if !self.may_be_call(candidate) {
            return Judgement::Plain;
        }
        let unknown = candidate.calls.iter().filter(|call| self.tools.get(&call.name).is_none());
        let unknown = unknown_names(unknown.map(|call| call.name.as_str()), self.tools);
        if candidate.calls.iter().any(|call| self.is_copy(call, &candidate.text)) {
            Judgement::Quoted
        } else if unknown.is_empty() {
            Judgement::Directive
        } else {
            Judgement::Unknown(format!("a call written as text names an unknown tool: {unknown}"))
        }
    }

    fn is_quoted(&mut self, excerpt: &str) -> bool {
        self.said.read(self.conversation);
        self.said.holds(excerpt)
    }

    fn is_exit(&self, name: &str) -> bool {
        self.tools.get(name).is_some_and(|tool| tool.kind == ToolKind::Exit)
    }
}

impl TextJudge<'_> {
    /// Returns whether a message of a user or a tool contains the call of a candidate with this text: as the same call or as
    /// the same text. Messages are compared without schemas, because tools can change between turns.
    fn is_copy(&mut self, call: &TextCall, text: &str) -> bool {
        self.said.read(self.conversation);
        [coerce_arguments(call, &Value::Null), coerce_call(call, self.tools)]
            .iter()
            .any(|arguments| self.said.holds_call(&call.name, arguments))
            || self.said.holds(text.get(call.span.0..call.span.1).unwrap_or(text))
    }
}
