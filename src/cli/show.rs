//! A request's events on a terminal: text on stdout, everything said about it on stderr.

use std::collections::HashMap;

use serde_json::Value;

use super::output::{
    begin_line, clean, cut, end_line, is_mid_line, print_json, print_text, say, say_kind, stderr_is_terminal,
    stdout_failed,
};
use super::spinner::Spinner;
use crate::request::{Event, FailReason, FinalState, FinishReason, Outcome};

/// Arguments and results are shown up to this many characters.
const MAX_SHOWN: usize = 160;

/// One event as a line of JSON.
pub(super) fn show_json(event: &Event) {
    print_json(event, false);
}

/// Shows events as they come.
pub(super) struct Show {
    spinner: Option<Spinner>,
    /// Calls that are not answered yet, as they are shown, by id.
    calls: HashMap<String, String>,
}

impl Show {
    pub(super) fn new() -> Self {
        Self { spinner: None, calls: HashMap::new() }
    }

    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Submitted { .. } | Event::Budget { .. } | Event::Approval { .. } => {}
            Event::TurnStarted { .. } => self.wait("waiting for the model"),
            Event::Reasoning { .. } => self.wait("the model is thinking"),
            Event::Text { text } => {
                self.stop_waiting();
                print_text(text);
            }
            Event::ToolCall { id, name, arguments } => {
                self.calls.insert(id.clone(), format!("{} {}", clean(name), shown(arguments)));
            }
            Event::ToolStarted { name, .. } => {
                // What the tool gave will stand in a line of its own, too.
                if stderr_is_terminal() {
                    begin_line();
                }
                self.wait(&format!("{name} is running"));
            }
            Event::ToolFinished { .. }
            | Event::Signal(_)
            | Event::Retry { .. }
            | Event::Reloaded { .. }
            | Event::Warning { .. } => {
                self.line(event);
            }
            Event::Finished(outcome) => self.finish(outcome),
        }
    }

    fn line(&mut self, event: &Event) {
        let text = match event {
            Event::ToolFinished { id, name, ok, result, error, elapsed_ms } => {
                let outcome = match (ok, result, error) {
                    (true, Some(result), _) => shown(result),
                    (_, _, Some(error)) => {
                        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
                        format!("failed: {}", cut(&clean(&message.replace('\n', "; ")), MAX_SHOWN))
                    }
                    (_, _, None) => String::from("failed"),
                };
                let call = self.calls.remove(id).unwrap_or_else(|| clean(name));
                format!("tool   {call} → {outcome} ({elapsed_ms} ms)")
            }
            Event::Retry { delay_ms, detail, .. } => {
                format!("retry  in {delay_ms} ms: {}", cut(&clean(detail), MAX_SHOWN))
            }
            Event::Reloaded { generation, detail } => {
                format!("reload generation {generation}: {}", clean(detail))
            }
            Event::Warning { message } => format!("warn   {}", clean(message)),
            // Signals are told together, at the end.
            _ => return,
        };
        self.stop_waiting();
        say(&text);
    }

    fn finish(&mut self, outcome: &Outcome) {
        self.stop_waiting();
        end_line();
        for signal in &outcome.signals {
            say(&format!("signal {} {}", clean(&signal.tool_name), shown(&signal.arguments)));
        }
        match outcome.state {
            FinalState::Completed => {
                let is_silent = outcome.text.trim().is_empty();
                if is_silent && outcome.reasoning.is_some() {
                    say("note: the model answered with reasoning only; see --json for it");
                } else if is_silent && outcome.signals.is_empty() {
                    say("note: the model answered with nothing: no text, no reasoning, no signal");
                } else if outcome.finish_reason == FinishReason::MaxTokens {
                    say(
                        "note: the answer ends at the server's token limit; raise :max-tokens in the worker's :params",
                    );
                }
            }
            FinalState::Failed => {
                let reason = outcome.fail_reason.unwrap_or(FailReason::UnknownError);
                // The finer word says more; `--json` has both.
                let kind = outcome.kind.as_deref().filter(|kind| !kind.is_empty());
                let detail = outcome.detail.as_deref().unwrap_or("the request failed");
                say_kind(kind.unwrap_or(reason.as_str()), detail);
            }
            // By nobody: what was lost by it is told at the end.
            FinalState::Canceled if stdout_failed() => {}
            FinalState::Canceled if outcome.text.is_empty() => say("canceled"),
            FinalState::Canceled => say("canceled; the text so far is kept"),
        }
    }

    /// Makes room for a question: nothing moves, and the next thing that is said begins a line.
    pub(super) fn make_room(&mut self) {
        self.stop_waiting();
        begin_line();
    }

    fn wait(&mut self, what: &str) {
        // A spinner on the line that text is being written to would be in its way.
        if !stderr_is_terminal() || is_mid_line() {
            return;
        }
        match &self.spinner {
            Some(spinner) => spinner.say(what),
            None => self.spinner = Some(Spinner::start(what)),
        }
    }

    fn stop_waiting(&mut self) {
        self.spinner = None;
    }
}

fn shown(value: &Value) -> String {
    cut(&clean(&value.to_string()), MAX_SHOWN)
}
