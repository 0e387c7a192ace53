//! The exit calls that `run` requires: `--result` and `--require-signal`.
//!
//! An exit tool never changes the flow of a request. If a required call is missing or invalid, the command submits a new
//! request that names the error.

use std::fmt;

use clap::Args;
use deftool_chat::Message;
use deftool_chat::request::Signal;
use deftool_lang::schema::{Arguments, NotAnObject, ToolSet, Violation};
use deftool_lang::spec::{ToolKind, advice_on_name};
use deftool_worker::SubmitRequest;
use serde_json::Value;

use crate::cli::outcome::CliError;

/// The kind of the error of a required call that is missing or invalid.
pub(super) const MISSING_SIGNAL: &str = "missing_signal";

// Options for the exit calls of a request.
#[derive(Debug, Args)]
pub(in crate::cli) struct SignalOptions {
    /// Print only the last call of this exit tool, as JSON
    ///
    /// Prints the arguments of the last valid call. Exits with 1 if there is none.
    #[arg(long, value_name = "EXIT_TOOL", conflicts_with_all = ["format", "json"])]
    pub(super) result: Option<String>,
    /// Send up to N more requests, which name the error, if a required exit call is missing or invalid
    #[arg(
        long,
        hide_short_help = true,
        value_name = "N",
        default_value_t = 0,
        requires = "result",
        conflicts_with = "replay"
    )]
    pub(super) result_retries: u32,
    /// Exit with 1 unless the model calls this exit tool with valid arguments; can be repeated
    #[arg(long = "require-signal", hide_short_help = true, value_name = "EXIT_TOOL")]
    pub(super) required: Vec<String>,
}

/// A required exit call that is missing or invalid.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MissingSignal {
    tool: String,
    /// The last call of the last request: its arguments, and why they are invalid.
    invalid: Option<(Value, String)>,
}

impl SignalOptions {
    /// Returns the names of the required exit tools.
    fn names(&self) -> impl Iterator<Item = &String> {
        self.result.iter().chain(&self.required)
    }

    /// Checks that the required tools are exit tools of the worker.
    ///
    /// # Errors
    /// If one of them is not.
    pub(super) fn check(&self, tools: &ToolSet) -> Result<(), CliError> {
        let is_exit = |name: &&String| tools.get(name).is_some_and(|tool| tool.kind == ToolKind::Exit);
        let Some(name) = self.names().find(|name| !is_exit(name)) else { return Ok(()) };
        if tools.get(name).is_some() {
            let message = format!("`{name}` is not an exit tool; define it with `defexit`");
            return Err(CliError::Usage(message));
        }
        let exits = || tools.iter().filter(|tool| tool.kind == ToolKind::Exit).map(|tool| tool.name.as_str());
        let advice = match exits().next() {
            Some(_) => advice_on_name(name, "exit tools", exits()),
            None => String::from("the worker has no exit tools; define one with `defexit`"),
        };
        Err(CliError::Usage(format!("unknown exit tool `{name}`; {advice}")))
    }

    /// Returns the first required call that is not among `signals`, or only with invalid arguments. `last`: the signals of
    /// the last request, which explain it. `tools`: those of the worker.
    pub(super) fn missing(
        &self,
        signals: &[Signal],
        last: &[Signal],
        tools: &ToolSet,
    ) -> Option<MissingSignal> {
        let name = self.names().find(|name| valid(signals, name, tools).is_none())?;
        let last = last.iter().rfind(|signal| signal.tool_name == **name);
        let invalid = last.and_then(|signal| {
            Some((signal.arguments.clone(), error_of(signal, tools)?.replace('\n', "; ")))
        });
        Some(MissingSignal { tool: name.clone(), invalid })
    }

    /// Returns the arguments of the last valid call of the tool of `--result`.
    pub(super) fn result_of<'s>(&self, signals: &'s [Signal], tools: &ToolSet) -> Option<&'s Value> {
        valid(signals, self.result.as_deref()?, tools)
    }
}

/// Returns the arguments of the last valid call of an exit tool.
fn valid<'s>(signals: &'s [Signal], name: &str, tools: &ToolSet) -> Option<&'s Value> {
    let found = signals.iter().rfind(|signal| signal.tool_name == name && error_of(signal, tools).is_none());
    found.map(|signal| &signal.arguments)
}

/// Returns why the arguments of an exit call are invalid. Those of a journal or a recording are validated again: the
/// schema may have changed, or the file.
fn error_of(signal: &Signal, tools: &ToolSet) -> Option<String> {
    if signal.arguments_error.is_some() {
        return signal.arguments_error.clone();
    }
    let name = &signal.tool_name;
    let Ok(arguments) = Arguments::try_from(signal.arguments.clone()) else {
        return Some(format!("{name}: {NotAnObject}"));
    };
    let (_, violations) = tools.get(name)?.accept(arguments).err()?;
    let lines = violations.iter().map(|Violation { path, message }| format!("{name}{path}: {message}"));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

impl MissingSignal {
    /// Returns a request that continues `conversation` and names the error.
    pub(super) fn retry(&self, submit: &SubmitRequest, mut conversation: Vec<Message>) -> SubmitRequest {
        let tool = &self.tool;
        conversation.push(Message::user(match &self.invalid {
            // The conversation does not contain exit calls.
            Some((arguments, error)) => format!(
                "You called `{tool}` with invalid arguments: {arguments}\n\nError: {error}\n\nCall `{tool}` again with \
                 valid arguments."
            ),
            None => format!("You did not call `{tool}`. Call `{tool}` with your result."),
        }));
        SubmitRequest { messages: conversation, ..submit.clone() }
    }
}

/// Describes the error for the user.
impl fmt::Display for MissingSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.invalid {
            Some((_, error)) => write!(f, "the model called `{}` with invalid arguments: {error}", self.tool),
            None => write!(f, "the model did not call `{}`", self.tool),
        }
    }
}
