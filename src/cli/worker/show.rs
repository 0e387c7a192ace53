//! Prints the events of a request: text to stdout, everything else to stderr.

use std::collections::HashMap;

use deftool_chat::Usage;
use deftool_chat::request::{Event, FailReason, FinalState, FinishReason, Outcome, Signal};
use deftool_lang::text::count;
use deftool_lang::tool::call_title;
use deftool_worker::PartialCall;
use serde_json::Value;

use crate::cli::terminal::output::{
    begin_line, bytes, clean, cut, end_line, eprint_failure, eprint_line, eprint_progress, is_mid_line,
    print_json, shows_progress, stdout_failed,
};
use crate::cli::terminal::spinner::Spinner;

/// Maximum length of calls and results, in characters.
const MAX_SHOWN: usize = 160;
/// Maximum length of the name of a call that is being received, in characters.
const MAX_NAME: usize = 64;

/// Prints an event as one line of JSON.
pub(in crate::cli) fn print_event_json(event: &Event) {
    print_json(event, false);
}

/// Prints events as text.
pub(in crate::cli) struct EventPrinter {
    spinner: Option<Spinner>,
    /// Descriptions of the running calls, by id.
    calls: HashMap<String, String>,
    is_suspended: bool,
}

impl EventPrinter {
    pub(in crate::cli) fn new() -> Self {
        Self { spinner: None, calls: HashMap::new(), is_suspended: false }
    }

    /// Reports the end of the request as its end in this process.
    pub(in crate::cli) fn suspend(&mut self) {
        self.is_suspended = true;
    }

    pub(in crate::cli) fn print(&mut self, event: &Event) {
        match event {
            Event::TurnStarted { .. } => self.wait("waiting for the model"),
            Event::Reasoning { .. } => self.wait("the model is thinking"),
            Event::ToolCall { id, name, arguments } => {
                self.calls.insert(id.clone(), call_title(name, arguments, MAX_SHOWN));
            }
            Event::ToolStarted { name, .. } => {
                // The result is also printed on its own line.
                if shows_progress() {
                    begin_line();
                }
                self.wait(&format!("{name} is running"));
            }
            Event::ToolFinished { .. }
            | Event::ArgumentsRepaired { .. }
            | Event::Signal(_)
            | Event::Retry { .. }
            | Event::Reloaded { .. }
            | Event::Resumed { .. }
            | Event::Warning { .. } => {
                self.line(event);
            }
            Event::Finished(outcome) => self.finish(outcome),
            // The text is printed by `Follower`.
            _ => {}
        }
    }

    /// Shows the progress of a call whose arguments are being received, on a line of its own.
    pub(in crate::cli) fn show_partial_call(&mut self, call: &PartialCall) {
        begin_line();
        self.wait(&format!("{}… {}", cut(&clean(&call.name), MAX_NAME), bytes(call.size as u64)));
    }

    fn line(&mut self, event: &Event) {
        let text = match event {
            Event::ToolFinished { id, name, ok, result, error, elapsed_ms, attachments: _ } => {
                let outcome = match (ok, result, error) {
                    (true, Some(result), _) => shown(result),
                    (_, _, Some(error)) => {
                        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
                        format!("failed: {}", one_line(message))
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
            Event::Resumed { superseded } if superseded.is_empty() => String::from("resume the request"),
            Event::Resumed { superseded } => {
                let size = count(superseded.chars().count(), "character");
                format!("resume the request; its interrupted reply of {size} is requested again")
            }
            Event::ArgumentsRepaired { id: _, name, path, kind } => {
                format!("repair {}{}: {}", clean(name), clean(path), kind.description())
            }
            Event::Warning { message } => format!("warn   {}", clean(message)),
            // Signals are printed at the end.
            _ => return,
        };
        self.stop_waiting();
        match event {
            Event::Warning { .. } => eprint_line(&text),
            _ => eprint_progress(&text),
        }
    }

    fn finish(&mut self, outcome: &Outcome) {
        self.stop_waiting();
        end_line();
        for Signal { tool_name, arguments, arguments_error, .. } in &outcome.signals {
            let mark = arguments_error.as_deref().map(|error| format!(" (invalid: {})", one_line(error)));
            let mark = mark.unwrap_or_default();
            eprint_line(&format!("signal {}{mark}", call_title(tool_name, arguments, MAX_SHOWN)));
        }
        match outcome.state {
            FinalState::Completed => {
                let is_silent = outcome.text.trim().is_empty();
                if is_silent && outcome.reasoning.is_some() {
                    eprint_line("note: the reply contains only reasoning; use --json to see it");
                } else if is_silent && outcome.signals.is_empty() {
                    eprint_line("note: the reply is empty: no text, no reasoning, no signal");
                } else if outcome.finish_reason == FinishReason::MaxTokens {
                    eprint_line(
                        "note: the reply was truncated at the token limit; raise :max-tokens in the worker's :params",
                    );
                }
            }
            FinalState::Failed => {
                let reason = outcome.fail_reason.unwrap_or(FailReason::UnknownError);
                // `kind` is more specific than `fail_reason`; `--json` has both.
                let kind = outcome.kind.as_deref().filter(|kind| !kind.is_empty());
                let detail = outcome.detail.as_deref().unwrap_or("the request failed");
                eprint_failure(kind.unwrap_or(reason.as_str()), detail);
            }
            // Canceled because stdout failed; the error is reported at the end.
            FinalState::Canceled if stdout_failed() => {}
            FinalState::Canceled if self.is_suspended => {
                eprint_line("suspended; `deftool journal resume FILE` continues the request");
            }
            FinalState::Canceled if outcome.text.is_empty() => eprint_line("canceled"),
            FinalState::Canceled => eprint_line("canceled; the text so far is kept"),
        }
    }

    /// Stops the spinner and ends the line, so that a prompt can be shown.
    pub(in crate::cli) fn prepare_prompt(&mut self) {
        self.stop_waiting();
        begin_line();
    }

    fn wait(&mut self, what: &str) {
        // A spinner would overwrite an unfinished line of text.
        if !shows_progress() || is_mid_line() {
            return;
        }
        match &self.spinner {
            Some(spinner) => spinner.set_message(what),
            None => self.spinner = Some(Spinner::start(what)),
        }
    }

    /// Clears the spinner.
    pub(in crate::cli) fn stop_waiting(&mut self) {
        self.spinner = None;
    }
}

/// Returns the token counts, the time to the first token and the number of retries as one line, if any is known.
pub(in crate::cli) fn usage_line(outcome: &Outcome) -> Option<String> {
    let mut parts = Vec::new();
    let Usage { prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, retries } =
        outcome.usage.unwrap_or_default();
    if prompt_tokens + completion_tokens > 0 {
        let of_which = |tokens: Option<u64>, what: &str| {
            tokens
                .filter(|tokens| *tokens > 0)
                .map(|tokens| format!(" ({tokens} {what})"))
                .unwrap_or_default()
        };
        let cached = of_which(cached_tokens, "cached");
        let reasoning = of_which(reasoning_tokens, "reasoning");
        parts.push(format!("{prompt_tokens} input tokens{cached}"));
        parts.push(format!("{completion_tokens} output tokens{reasoning}"));
    }
    if let Some(first) = outcome.first_token_ms {
        parts.push(format!("first token after {first} ms"));
    }
    match retries {
        0 => {}
        1 => parts.push(String::from("1 retry")),
        retries => parts.push(format!("{retries} retries")),
    }
    (!parts.is_empty()).then(|| format!("usage  {}", parts.join(", ")))
}

/// Returns a message as one line, cut if it is long.
fn one_line(message: &str) -> String {
    cut(&clean(&message.replace('\n', "; ")), MAX_SHOWN)
}

/// Formats a value as truncated JSON.
fn shown(value: &Value) -> String {
    cut(&clean(&cut(value, MAX_SHOWN)), MAX_SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_line_contains_what_is_known() {
        let usage = Usage { prompt_tokens: 120, completion_tokens: 30, ..Usage::default() };
        let details = Usage { cached_tokens: Some(100), reasoning_tokens: Some(12), retries: 2, ..usage };
        let retried = Usage { retries: 1, ..Usage::default() };
        for (usage, first_token_ms, line) in [
            (None, None, None),
            (None, Some(812), Some("usage  first token after 812 ms")),
            (Some(retried), None, Some("usage  1 retry")),
            (Some(usage), None, Some("usage  120 input tokens, 30 output tokens")),
            (
                Some(details),
                Some(812),
                Some(
                    "usage  120 input tokens (100 cached), 30 output tokens (12 reasoning), first token after 812 ms, \
                     2 retries",
                ),
            ),
        ] {
            let outcome = Outcome { usage, first_token_ms, ..Outcome::without_reply(None) };
            assert_eq!(usage_line(&outcome).as_deref(), line);
        }
    }
}
