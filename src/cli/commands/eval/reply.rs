//! What a model did in its first reply.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::Usage;
use deftool_chat::request::{Event, FailReason, FailureKind, FinalState, Outcome};
use deftool_eval::judge::ObservedCall;
use deftool_lang::text::digest;
use deftool_worker::EventStream;
use serde_json::Value;

/// A reply of a model.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelReply {
    /// The calls, in order, also those that cannot be made.
    pub(super) calls: Vec<ObservedCall>,
    /// The text.
    pub(super) text: String,
    /// Why the reply cannot be used, if it is the model's fault: it was cut off inside a call, or repeats itself.
    pub(super) defect: Option<String>,
    /// The warnings of the engine, such as text that looks like a call and was not read.
    pub(super) warnings: Vec<String>,
    pub(super) usage: Option<Usage>,
    pub(super) elapsed: Duration,
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerFailure {
    /// The message of the server, or of the engine.
    pub(super) detail: String,
    /// Whether all other requests will fail, too: the server rejects the key, or cannot be reached.
    pub(super) is_final: bool,
}

impl ModelReply {
    /// Reads the events of a request to its end. `Err`: the server failed. `None`: it was canceled.
    pub(super) async fn of(events: &mut EventStream) -> Option<Result<Self, ServerFailure>> {
        let mut reading = Reading::default();
        while let Some(event) = events.next().await {
            if let Event::Finished(outcome) = &*event {
                return reading.finish(outcome);
            }
            reading.take(&event);
        }
        None
    }

    /// Returns a digest of what is judged. Equal replies are no independent evidence.
    pub(super) fn digest(&self) -> String {
        let calls = self.calls.iter().flat_map(|call| [call.tool.clone(), call.arguments.to_string()]);
        digest(std::iter::once(self.text.clone()).chain(calls))
    }
}

/// The calls of a reply so far.
#[derive(Default)]
struct Reading {
    reply: ModelReply,
    /// Index of each call, by its id.
    by_id: BTreeMap<String, usize>,
    /// The repairs of exit calls, which have no id, by tool.
    repairs: BTreeMap<String, u32>,
}

impl Reading {
    fn take(&mut self, event: &Event) {
        match event {
            Event::ToolCall { id, name, arguments } => {
                self.by_id.insert(id.clone(), self.reply.calls.len());
                self.add(name, Value::clone(arguments), None);
            }
            Event::ArgumentsRepaired { id: Some(id), .. } => {
                if let Some(call) = self.by_id.get(id).and_then(|index| self.reply.calls.get_mut(*index)) {
                    call.repairs += 1;
                }
            }
            Event::ArgumentsRepaired { id: None, name, .. } => {
                *self.repairs.entry(name.clone()).or_default() += 1;
            }
            Event::ToolFinished { id, error: Some(error), .. } => {
                if let Some(call) = self.by_id.get(id).and_then(|index| self.reply.calls.get_mut(*index)) {
                    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
                    call.error = Some(message.to_owned());
                }
            }
            Event::Signal(signal) => {
                let error = signal.arguments_error.clone();
                let repairs = self.repairs.remove(&signal.tool_name).unwrap_or_default();
                self.add(&signal.tool_name, signal.arguments.clone(), error);
                if let Some(call) = self.reply.calls.last_mut() {
                    call.repairs = repairs;
                }
            }
            Event::Warning { message } => self.reply.warnings.push(message.clone()),
            _ => {}
        }
    }

    fn add(&mut self, tool: &str, arguments: Value, error: Option<String>) {
        let tool = tool.to_owned();
        self.reply.calls.push(ObservedCall { tool, arguments, error, repairs: 0, written_as_text: false });
    }

    fn finish(mut self, outcome: &Arc<Outcome>) -> Option<Result<ModelReply, ServerFailure>> {
        let detail = outcome.detail.clone().unwrap_or_default();
        match outcome.state {
            FinalState::Canceled => return None,
            FinalState::Failed if is_defect(outcome) => self.reply.defect = Some(detail),
            FinalState::Failed => {
                let is_final = outcome.fail_reason == Some(FailReason::ConnectFailed)
                    || is_kind(outcome, FailureKind::Unauthorized);
                return Some(Err(ServerFailure { detail, is_final }));
            }
            FinalState::Completed => {}
        }
        // Text is searched for calls only if the reply has no structured ones. They are removed from the shown text.
        let reads_text = outcome.raw_text.is_some();
        self.reply.calls.iter_mut().for_each(|call| call.written_as_text = reads_text);
        self.reply.text.clone_from(&outcome.text);
        self.reply.usage = outcome.usage;
        Some(Ok(self.reply))
    }
}

/// Whether a failed request is the fault of the model, and not of its server.
fn is_defect(outcome: &Outcome) -> bool {
    match outcome.fail_reason {
        Some(FailReason::RepeatedLineLoop) => true,
        Some(FailReason::ToolParseError) => !is_kind(outcome, FailureKind::LostFrame),
        _ => false,
    }
}

fn is_kind(outcome: &Outcome, kind: FailureKind) -> bool {
    outcome.kind.as_deref() == Some(kind.as_str())
}
