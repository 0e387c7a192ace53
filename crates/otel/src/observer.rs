//! Builds the operations of a request from its observations.
//!
//! An exchange with the model ends with its reply, but stays open until the events of its last part have arrived.
//! Operations that are unfinished at the end of a request get its error.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use deftool_chat::request::{Event, FailReason, FinalState, FinishReason, Outcome};
use deftool_chat::{ChatRequest, Message, Reply, ReplyStatus};
use deftool_lang::tool::{ToolCall, TraceContext};
use deftool_record::{Redaction, RequestTrace, Session};
use deftool_worker::{Observation, Observer, RequestObserver};
use opentelemetry::{KeyValue, Value as AttributeValue};
use serde_json::Value;

use crate::attribute::{count, list_of};
use crate::content::{ReplyContent, call_part, capture, captured_json, json_attribute, messages};
use crate::convention as names;
use crate::operation::{Operation, OperationKind, Spans};
use crate::server::ModelServer;

/// Maximum number of measured gaps between the chunks of a reply.
const MAX_GAPS: usize = 65_536;
/// The error of an operation whose request ended without an outcome.
const INTERNAL: &str = "internal";

/// Receives the operations of requests.
pub(crate) type Sink = Arc<dyn Fn(Operation) + Send + Sync>;

/// Observes the requests of a worker.
pub(crate) struct OperationObserver {
    pub(crate) sink: Sink,
    pub(crate) redaction: Arc<Redaction>,
    /// Whether messages, arguments and results are exported.
    pub(crate) captures_content: bool,
}

impl fmt::Debug for OperationObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationObserver").finish_non_exhaustive()
    }
}

impl Observer for OperationObserver {
    fn begin(&self, request: &Session) -> Box<dyn RequestObserver> {
        let conversation = if self.captures_content { request.conversation.clone() } else { Vec::new() };
        Box::new(ObservedRequest {
            sink: Arc::clone(&self.sink),
            redaction: Arc::clone(&self.redaction),
            captures_content: self.captures_content,
            id: request.request_id.clone(),
            job: request.job_name.clone(),
            worker: request.worker.clone(),
            model: request.model.clone(),
            server: ModelServer::new(&request.url, request.server.dialect),
            submitted_at_ms: request.submitted_at_ms,
            trace: request.trace.clone(),
            conversation: conversation.into_iter().map(Arc::new).collect(),
            last_ms: 0,
            chat: None,
            calls: BTreeMap::new(),
            has_ended: false,
        })
    }
}

/// A request whose operations are built.
struct ObservedRequest {
    sink: Sink,
    redaction: Arc<Redaction>,
    captures_content: bool,
    id: String,
    job: String,
    worker: String,
    model: String,
    server: ModelServer,
    submitted_at_ms: u64,
    trace: RequestTrace,
    conversation: Vec<Arc<Message>>,
    /// The time of the last observation.
    last_ms: u64,
    /// The exchange with the model that has not ended, or whose last events have not arrived.
    chat: Option<Chat>,
    /// The calls that have not ended.
    calls: BTreeMap<String, Operation>,
    has_ended: bool,
}

/// An exchange with the model.
struct Chat {
    operation: Operation,
    /// The time of the last chunk, in milliseconds since the submission.
    last_chunk_ms: Option<u64>,
    input: Vec<Arc<Message>>,
    output: ReplyContent,
    /// Whether the reply ended.
    has_ended: bool,
}

impl RequestObserver for ObservedRequest {
    fn observe(&mut self, at_ms: u64, observation: Observation<'_>) {
        self.last_ms = at_ms;
        match observation {
            Observation::Sent { span, attempt, request } => self.on_sent(span, attempt, request),
            Observation::Rejected { status } => {
                let error =
                    status.map_or_else(|| String::from("connect_failed"), |status| status.to_string());
                self.end_chat(Some(&error));
            }
            Observation::Chunk => self.on_chunk(),
            Observation::Replied { reply, id } => self.on_reply(reply, id),
            Observation::Calling { span, call } => self.on_calling(span, call),
            Observation::Event(event) => self.on_event(event),
            Observation::Suspended => self.suspend(),
            _ => {}
        }
    }
}

impl Drop for ObservedRequest {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end(Some(INTERNAL), None);
        }
    }
}

impl ObservedRequest {
    /// Begins an operation with the span `span`, a child of the span of the request.
    fn begin(&self, kind: OperationKind, subject: &str, span: Option<&TraceContext>) -> Operation {
        let request = self.trace.request.as_ref();
        let spans = request
            .zip(span)
            .map(|(request, own)| Spans { own: own.clone(), parent: Some((request.span_id(), false)) });
        self.begin_at(self.last_ms, kind, subject, spans)
    }

    fn begin_at(&self, start_ms: u64, kind: OperationKind, subject: &str, spans: Option<Spans>) -> Operation {
        let at_ms = self.submitted_at_ms + start_ms;
        let mut operation = Operation {
            kind,
            subject: subject.to_owned(),
            spans,
            start_ms: at_ms,
            end_ms: at_ms,
            attributes: Vec::with_capacity(16),
            error: None,
            gaps_ms: Vec::new(),
            content: Vec::new(),
        };
        operation.set(names::OPERATION, kind.as_str());
        operation
    }

    fn send(&self, mut operation: Operation, end_ms: u64) {
        operation.end_ms = operation.start_ms.max(self.submitted_at_ms + end_ms);
        self.finish(operation);
    }

    fn finish(&self, mut operation: Operation) {
        operation.finish(&self.redaction);
        (self.sink)(operation);
    }

    fn on_sent(&mut self, span: Option<&TraceContext>, attempt: u32, request: &ChatRequest) {
        self.end_chat(Some(INTERNAL));
        let mut operation = self.begin(OperationKind::Chat, &request.model, span);
        operation.set(names::PROVIDER, self.server.provider);
        operation.set(names::REQUEST_MODEL, request.model.clone());
        operation.set(names::STREAM, true);
        for (member, name) in names::PARAMETERS {
            let number = request.params.get(member).filter(|_| operation.get(name).is_none());
            let number = if names::INTEGERS.contains(&name) {
                number.and_then(Value::as_i64).map(AttributeValue::I64)
            } else {
                number.and_then(Value::as_f64).map(AttributeValue::F64)
            };
            if let Some(number) = number {
                operation.set(name, number);
            }
        }
        if attempt > 1 {
            operation.set(names::RESEND_COUNT, i64::from(attempt) - 1);
        }
        self.set_server(&mut operation);
        let input = if self.captures_content { request.messages.clone() } else { Vec::new() };
        let output = ReplyContent::default();
        self.chat = Some(Chat { operation, last_chunk_ms: None, input, output, has_ended: false });
    }

    fn set_server(&self, operation: &mut Operation) {
        if let Some((host, port)) = &self.server.address {
            operation.set(names::SERVER_ADDRESS, host.clone());
            operation.set(names::SERVER_PORT, i64::from(*port));
        }
    }

    #[allow(clippy::cast_precision_loss)] // milliseconds
    fn on_chunk(&mut self) {
        let (now, submitted) = (self.last_ms, self.submitted_at_ms);
        let Some(chat) = &mut self.chat else { return };
        match chat.last_chunk_ms {
            None => {
                let waited = (submitted + now).saturating_sub(chat.operation.start_ms);
                chat.operation.set(names::TIME_TO_FIRST_CHUNK, waited as f64 / 1e3);
            }
            Some(last) if chat.operation.gaps_ms.len() < MAX_GAPS => {
                let gap = u32::try_from(now.saturating_sub(last)).unwrap_or(u32::MAX);
                chat.operation.gaps_ms.push(gap);
            }
            Some(_) => {}
        }
        chat.last_chunk_ms = Some(now);
    }

    fn on_reply(&mut self, reply: &Reply, id: Option<&str>) {
        let end_ms = self.submitted_at_ms + self.last_ms;
        let Some(chat) = &mut self.chat else { return };
        let operation = &mut chat.operation;
        operation.end_ms = end_ms;
        if let Some(id) = id {
            operation.set(names::RESPONSE_ID, id.to_owned());
        }
        if let Some(model) = &reply.model {
            operation.set(names::RESPONSE_MODEL, model.clone());
        }
        if let Some(reason) = &reply.finish_reason {
            operation.set(names::FINISH_REASONS, list_of(reason));
            chat.output.finish_reason.clone_from(reason);
        }
        if let Some(usage) = reply.usage {
            operation.set(names::INPUT_TOKENS, count(usage.prompt_tokens));
            operation.set(names::OUTPUT_TOKENS, count(usage.completion_tokens));
        }
        operation.error = match &reply.status {
            ReplyStatus::Complete => None,
            ReplyStatus::ServerError { error } => {
                Some(error.code.map_or_else(|| String::from("server_error"), |code| code.to_string()))
            }
            ReplyStatus::CallTruncated { .. } => Some(String::from("call_truncated")),
            ReplyStatus::Incomplete { .. } => Some(String::from("stream_incomplete")),
            ReplyStatus::Empty => Some(String::from("empty_stream")),
        };
        chat.has_ended = true;
    }

    fn on_calling(&mut self, span: Option<&TraceContext>, call: &ToolCall) {
        self.end_chat(None);
        let mut operation = self.begin(OperationKind::Tool, &call.name, span);
        operation.set(names::AGENT, self.worker.clone());
        operation.set(names::TOOL_NAME, call.name.clone());
        operation.set(names::TOOL_TYPE, "function");
        operation.set(names::TOOL_CALL_ID, call.id.clone());
        if self.captures_content {
            let arguments = json_attribute(&call.arguments, &self.redaction);
            operation.content.push(KeyValue::new(names::TOOL_ARGUMENTS, arguments));
        }
        self.calls.insert(call.id.clone(), operation);
    }

    fn on_event(&mut self, event: &Event) {
        match event {
            Event::Text { text } => self.capture(|output| capture(&mut output.text, text)),
            Event::Reasoning { text } => self.capture(|output| capture(&mut output.reasoning, text)),
            Event::ToolCall { id, name, arguments } => self.capture_call(id, name, arguments),
            Event::Signal(signal) => self.capture_call("", &signal.tool_name, &signal.arguments),
            Event::ToolFinished { id, ok, result, error, .. } => {
                if let Some(mut operation) = self.calls.remove(id) {
                    let kind = error.as_ref().and_then(|error| error.get("kind")).and_then(Value::as_str);
                    operation.error = (!ok).then(|| kind.unwrap_or("failure").to_owned());
                    if let Some(result) = result.as_ref().or(error.as_ref()).filter(|_| self.captures_content)
                    {
                        let result = json_attribute(result, &self.redaction);
                        operation.content.push(KeyValue::new(names::TOOL_RESULT, result));
                    }
                    self.send(operation, self.last_ms);
                }
            }
            Event::Finished(outcome) => self.on_finished(outcome),
            Event::TurnStarted { .. } | Event::Approval { .. } => self.end_chat(None),
            _ => {}
        }
    }

    fn capture(&mut self, add: impl FnOnce(&mut ReplyContent)) {
        if let Some(chat) = self.chat.as_mut().filter(|_| self.captures_content) {
            add(&mut chat.output);
        }
    }

    fn capture_call(&mut self, id: &str, name: &str, arguments: &Value) {
        self.capture(|output| output.calls.push(call_part(id, name, &captured_json(arguments))));
    }

    /// Ends the exchange with the model. `error`: the error of an exchange whose reply has not ended.
    fn end_chat(&mut self, error: Option<&str>) {
        let Some(Chat { mut operation, input, output, has_ended, .. }) = self.chat.take() else { return };
        if self.captures_content {
            operation.content.extend(messages(&input, output, &self.redaction));
        }
        if has_ended {
            self.finish(operation);
        } else {
            operation.error = error.map(str::to_owned);
            self.send(operation, self.last_ms);
        }
    }

    fn on_finished(&mut self, outcome: &Outcome) {
        let reason = outcome.fail_reason.and_then(|reason| serde_json::to_value(reason).ok());
        let reason = reason.as_ref().and_then(Value::as_str);
        let error = match (outcome.state, outcome.fail_reason) {
            (FinalState::Completed, _) => None,
            // The kind is finer, but its names may change.
            (_, Some(FailReason::UnknownError)) => outcome.kind.as_deref().or(reason),
            (FinalState::Failed | FinalState::Canceled, _) => reason.or(Some(INTERNAL)),
        };
        self.end(error, Some(outcome));
    }

    /// Exports what has ended. The process that continues the request exports the rest.
    fn suspend(&mut self) {
        self.chat = self.chat.take().filter(|chat| chat.has_ended);
        self.end_chat(None);
        self.calls.clear();
        self.has_ended = true;
    }

    /// Ends the request with everything that is open.
    fn end(&mut self, error: Option<&str>, outcome: Option<&Outcome>) {
        self.has_ended = true;
        self.end_chat(error.or(Some(INTERNAL)));
        for (_, mut operation) in std::mem::take(&mut self.calls) {
            operation.error = Some(error.unwrap_or(INTERNAL).to_owned());
            self.send(operation, self.last_ms);
        }
        let spans = self.trace.request.clone().map(|own| {
            let parent = self.trace.submitter.as_ref().map(|submitter| (submitter.span_id(), true));
            Spans { own, parent }
        });
        let mut operation = self.begin_at(0, OperationKind::Agent, &self.worker, spans);
        operation.error = error.map(str::to_owned);
        operation.set(names::PROVIDER, self.server.provider);
        operation.set(names::AGENT, self.worker.clone());
        operation.set(names::REQUEST_MODEL, self.model.clone());
        operation.set(names::REQUEST_ID, self.id.clone());
        if !self.job.is_empty() {
            operation.set(names::JOB_NAME, self.job.clone());
        }
        self.set_server(&mut operation);
        if let Some(outcome) = outcome {
            let reason = finish_reason(outcome.finish_reason);
            operation.set(names::FINISH_REASONS, list_of(reason));
            if let Some(usage) =
                outcome.usage.filter(|usage| usage.prompt_tokens + usage.completion_tokens > 0)
            {
                operation.set(names::INPUT_TOKENS, count(usage.prompt_tokens));
                operation.set(names::OUTPUT_TOKENS, count(usage.completion_tokens));
            }
            if self.captures_content {
                let mut output = ReplyContent { finish_reason: reason.to_owned(), ..ReplyContent::default() };
                capture(&mut output.text, &outcome.text);
                operation.content.extend(messages(&self.conversation, output, &self.redaction));
            }
        }
        self.send(operation, self.last_ms);
    }
}

/// Returns the finish reason of a request in the words of the conventions.
fn finish_reason(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::MaxTokens => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Canceled => "canceled",
        FinishReason::Failed => "error",
    }
}

#[cfg(test)]
mod tests;
