//! Sorts the calls of a reply by kind of tool, and validates their arguments.

use std::sync::Arc;

use deftool_lang::schema::{
    Accepted, Arguments, Repair, ToolEntry, ToolKind, ToolSet, Violation, repair_text,
};
use deftool_lang::spec::{advice_on_name, nearest};
use deftool_lang::tool::{ToolError, ToolErrorKind};
use serde_json::Value;

use super::run::CallPlan;
use super::text_calls::Fault;
use crate::{RawArguments, RawCall};

/// The calls of a reply by kind of tool, each in order.
pub(super) struct Partition<'a> {
    pub(super) exit: Vec<&'a RawCall>,
    /// The calls of normal and of unknown tools.
    pub(super) other: Vec<&'a RawCall>,
}

/// Sorts the calls of a reply by kind of tool.
pub(super) fn partition<'a>(calls: impl IntoIterator<Item = &'a RawCall>, tools: &ToolSet) -> Partition<'a> {
    let (exit, other) = calls.into_iter().partition(|call: &&RawCall| tools.is_exit(&call.name));
    Partition { exit, other }
}

/// Names a call without a name: by its id, which Kimi derives from the name, or by its arguments, if these are a whole
/// call.
pub(super) fn name_call(call: &mut RawCall, tools: &ToolSet) {
    let is_known = |name: &str| tools.called(name).is_some();
    if !call.name.is_empty() {
        return;
    }
    if let Some(name) = call.id.as_deref().and_then(name_in_id).filter(|name| is_known(name)) {
        name.clone_into(&mut call.name);
    } else if let RawArguments::Object { value } = &call.arguments
        && let Some(members) = value.shared().as_object().filter(|members| members.len() == 2)
        && let Some(name) = members.get("name").and_then(Value::as_str).filter(|name| is_known(name))
        && let Some(inner) = members.get("arguments")
        && let Ok(value) = Arguments::try_from(inner.clone())
    {
        name.clone_into(&mut call.name);
        call.arguments = RawArguments::Object { value };
        call.written = None;
    }
}

/// Returns the name in an id of Kimi: `functions.NAME:0`, or `functions_NAME_0` after a gateway.
fn name_in_id(id: &str) -> Option<&str> {
    let (prefix, number) = id.rsplit_once([':', '_'])?;
    let name = prefix.strip_prefix("functions.").or_else(|| prefix.strip_prefix("functions_"))?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
}

/// A call of a normal or unknown tool after validation against its tool's schema.
pub(super) enum Checked {
    /// The call can run.
    Valid {
        /// The name of the tool.
        name: String,
        arguments: Arguments,
        /// The arguments as the model wrote them, if values were repaired.
        written: Option<Arc<str>>,
        plan: CallPlan,
        repairs: Vec<Repair>,
    },
    /// The call cannot run.
    Invalid {
        /// The name of the tool, or an unknown name.
        name: String,
        /// The arguments if they are an object, otherwise the received text as a string.
        arguments: Arc<Value>,
        /// For the model, with one line per violation.
        error: ToolError,
    },
}

impl Checked {
    /// A malformed call written as text. The text of the reply contains it. The error does not quote it, because a call
    /// that an earlier result contains is not executed.
    pub(super) fn of_fault(fault: &Fault) -> Self {
        let why = fault.why.strip_suffix(&format!(": {}", fault.excerpt)).unwrap_or(&fault.why);
        Self::Invalid {
            name: fault.name.clone().unwrap_or_default(),
            arguments: Arc::new(Value::String(fault.excerpt.clone())),
            error: ToolError::new(ToolErrorKind::InvalidArguments, why),
        }
    }

    /// Adds arguments that are not an object to the error for the model: the conversation cannot contain them.
    pub(super) fn with_received_text(mut self) -> Self {
        if let Self::Invalid { arguments, error, .. } = &mut self
            && let Some(text) = arguments.as_str().filter(|text| !text.is_empty())
        {
            error.message.push_str("; received: ");
            error.message.extend(text.chars().take(MAX_RECEIVED));
        }
        self
    }
}

/// Maximum length of unreadable arguments in an error for the model, in characters.
const MAX_RECEIVED: usize = 2_000;

/// Validates a call of a reply. Repairs what a model or server damaged without loss.
pub(super) fn check(call: &RawCall, tools: &ToolSet) -> Checked {
    let invalid = |name: &str, arguments: Arc<Value>, kind, message: String| Checked::Invalid {
        name: name.to_owned(),
        arguments,
        error: ToolError::new(kind, message),
    };
    let received = || match &call.arguments {
        RawArguments::Object { value } => Arc::clone(value.shared()),
        RawArguments::Malformed { text, .. } => Arc::new(Value::String(text.clone())),
    };
    let Some((tool, renamed)) = tools.called(&call.name) else {
        let message = unknown_tool(&call.name, tools);
        return invalid(&call.name, received(), ToolErrorKind::UnknownTool, message);
    };
    let name = &tool.name;
    let parsed = match &call.arguments {
        RawArguments::Object { value } => Ok((value.clone(), call.repairs.clone())),
        RawArguments::Malformed { error, truncated: true, .. } => Err(error),
        RawArguments::Malformed { text, error, .. } => repair_text(text).ok_or(error),
    };
    let (written, text_repairs) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let message = format!("{name}: the arguments are not a JSON object: {error}");
            return invalid(name, received(), ToolErrorKind::InvalidArguments, message);
        }
    };
    match tool.accept_repaired(written.clone()) {
        Ok(Accepted { arguments, repairs }) => Checked::Valid {
            name: name.clone(),
            written: (!repairs.is_empty()).then(|| written.to_string().into()),
            plan: plan_of(tool, &arguments),
            arguments,
            repairs: renamed.into_iter().chain(text_repairs).chain(repairs).collect(),
        },
        Err((arguments, violations)) => {
            let message = violations_of(name, &violations);
            invalid(name, Arc::clone(arguments.shared()), ToolErrorKind::InvalidArguments, message)
        }
    }
}

/// Validates the arguments of an earlier call again. They are not repaired.
///
/// # Errors
/// Returns why the call is no longer valid.
pub(super) fn check_again(
    name: &str,
    arguments: &Arguments,
    tools: &ToolSet,
) -> Result<(Arguments, CallPlan), ToolError> {
    let tool = tools.get(name).filter(|tool| tool.kind == ToolKind::Normal);
    let tool = tool.ok_or_else(|| ToolError::new(ToolErrorKind::UnknownTool, unknown_tool(name, tools)))?;
    match tool.accept(arguments.clone()) {
        Ok(arguments) => {
            let plan = plan_of(tool, &arguments);
            Ok((arguments, plan))
        }
        Err((_, violations)) => {
            Err(ToolError::new(ToolErrorKind::InvalidArguments, violations_of(name, &violations)))
        }
    }
}

fn plan_of(tool: &ToolEntry, arguments: &Arguments) -> CallPlan {
    CallPlan {
        timeout: tool.timeout,
        needs_approval: tool.needs_approval(arguments),
        effect: tool.effect,
        text_result: tool.text_results,
        max_result: tool.max_result,
    }
}

/// Returns one line per violation, with the tool's name and the path.
fn violations_of(name: &str, violations: &[Violation]) -> String {
    let lines = violations.iter().map(|Violation { path, message }| format!("{name}{path}: {message}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the message for a call of the unknown tool `name`.
fn unknown_tool(name: &str, tools: &ToolSet) -> String {
    if name.is_empty() {
        return String::from("the call has no tool name");
    }
    if tools.is_empty() {
        return format!("unknown tool `{name}`");
    }
    let names = tools.iter().map(|tool| tool.name.as_str());
    format!("unknown tool `{name}`; {}", advice_on_name(name, "tools", names))
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
