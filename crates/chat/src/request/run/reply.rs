//! The text of a reply while it is streamed, and the decisions at its end.

use std::sync::Arc;

use deftool_lang::schema::{Repair, ToolSet};
use deftool_lang::spec::{Fallback, OnFailure};
use deftool_lang::text::append;
use serde_json::Map;

use super::batch::Batch;
use super::calls::budget_failure;
use super::state::{Phase, ReplyState, Run};
use crate::fallback::{TextCall, calls_only_in_reasoning};
use crate::finish::{FinishMeaning, shown_finish_detail, shown_finish_reason};
use crate::request::event::Event;
use crate::request::outcome::{FailReason, Failure, FailureKind, FinalState, FinishReason, Signal};
use crate::request::repetition::Loop;
use crate::request::text_calls::{Directive, Fault, HoldBack, TextClassifier, coerce_call};
use crate::request::validate::{Checked, Partition, check, name_call, partition, unknown_names};
use crate::{
    ChatEvent, MAX_CALLS, RawArguments, RawCall, Received, Reply, ReplyStatus, ServerError, ServerErrorKind,
    Usage,
};

const EMPTY_TWICE: &str = "the model answered with neither text nor a call, twice";

impl Run {
    /// Takes an event of the reply. `tools` is the tool set that the turn was sent with.
    pub fn on_event(&mut self, event: ChatEvent, tools: &ToolSet, at_ms: u64) {
        match self.phase {
            Phase::Asked { .. } => self.phase = Phase::Streaming,
            Phase::Streaming => {}
            Phase::Closing { .. } if matches!(event, ChatEvent::Ended { .. }) => {}
            Phase::Ready | Phase::Closing { .. } | Phase::Calling(_) | Phase::Finished => return,
        }
        self.advance_time(at_ms);
        if let ChatEvent::Text { .. } | ChatEvent::Reasoning { .. } | ChatEvent::ToolCallDelta { .. } = event
        {
            self.first_token_ms.get_or_insert(self.at_ms);
        }
        if *tools.digest() != self.turn_tools {
            self.finish_failed(Failure::new(
                FailReason::UnknownError,
                FailureKind::ToolSetChanged,
                "the tool set of the reply differs from the tool set of its request",
            ));
            return;
        }
        match event {
            ChatEvent::Text { text } => self.take_text(&text, tools),
            ChatEvent::Reasoning { text } => {
                if !text.is_empty() {
                    append(&mut self.reasoning, &text);
                    self.events.push(Event::Reasoning { text });
                }
            }
            ChatEvent::ToolCallDelta { index, .. } => {
                self.call_times.insert(index, self.at_ms);
            }
            ChatEvent::Progress { .. } => {}
            ChatEvent::Ended { mut reply } => {
                reply.calls.iter_mut().for_each(|call| name_call(call, tools));
                pass_signature_on(&mut reply.calls, tools);
                self.received.parts = std::mem::take(&mut *reply.opaque);
                self.on_reply(&reply, tools);
            }
        }
    }

    fn take_text(&mut self, text: &str, tools: &ToolSet) {
        let looped = self.add_text(text, tools);
        if self.hold_back.is_over_limit() {
            self.close(server_failure(&too_many_calls()), self.at_ms);
        } else if let Some(found) = looped {
            self.close(loop_failure(found), self.at_ms);
        }
    }

    /// Takes text up to a loop. Text after the loop is dropped, so that the outcome does not depend on how the text was
    /// split.
    fn add_text(&mut self, text: &str, tools: &ToolSet) -> Option<Loop> {
        let looped = self.lines.push(text);
        let text = looped.as_ref().and_then(|(end, _)| text.get(..*end)).unwrap_or(text);
        let at_ms = self.at_ms;
        let (hold_back, mut classifier) = self.text_reader(tools);
        let (shown, taken) = hold_back.push(text, at_ms, &mut classifier);
        self.raw_text.push(text.get(..taken).unwrap_or(text), self.text.len(), &shown);
        self.emit_text(shown);
        looped.map(|(_, found)| found)
    }

    /// Returns the text of the reply that is held back, and the classifier for its candidates.
    fn text_reader<'r>(&'r mut self, tools: &'r ToolSet) -> (&'r mut HoldBack, TextClassifier<'r>) {
        let Self { hold_back, conversation, message_index: index, .. } = self;
        (hold_back, TextClassifier { tools, conversation, index })
    }

    /// Counts the tokens of a reply, and reports an unknown finish reason. Returns the meaning of a known one.
    fn note_end(&mut self, reply: &Reply) -> Option<FinishMeaning> {
        self.count_usage(reply.usage);
        let finish = reply.finish(self.config.dialect);
        if let Some(reason) = reply.finish_reason.as_deref().filter(|_| finish.is_none()) {
            let reason = shown_finish_reason(reason);
            self.warn(&format!("unknown finish reason `{reason}`: the reply may be incomplete"));
        }
        finish
    }

    /// Processes the end of a reply, which is complete or being closed.
    fn on_reply(&mut self, reply: &Reply, tools: &ToolSet) {
        let finish = self.note_end(reply);
        let (closing, status, looped) = match std::mem::replace(&mut self.phase, Phase::Streaming) {
            Phase::Closing { failure } => (Some(failure), reply.status.clone(), None),
            _ => {
                let (status, looped) = self.read_failed_generation(reply, tools);
                (None, status, looped)
            }
        };
        let Partition { exit, mut other } = partition(&reply.calls, tools);
        // The server stopped the reply because of its content, which includes its calls.
        let is_filtered = finish == Some(FinishMeaning::Filtered);
        if is_filtered {
            other.clear();
        }
        let status = status_without_exit_calls(status, other.iter().copied());
        let cut = other.iter().copied().rfind(|call| is_truncated(call));
        let is_finished = closing.is_none() && reply.is_finished(self.config.dialect);
        let (hold_back, mut classifier) = self.text_reader(tools);
        let shown = hold_back.finish(is_finished, &mut classifier);
        self.emit_text(shown);

        // Record signals before anything can fail. Text is searched for calls only if there are no structured calls.
        for call in &exit {
            let emitted_at_ms = self.call_times.get(&call.index).copied().unwrap_or(self.at_ms);
            self.record_signal(call, emitted_at_ms, tools);
        }
        let searches_text = other.is_empty() && !is_filtered;
        if searches_text {
            self.warn_of_unread_call();
        } else {
            self.hold_back.take_unread();
        }
        let written = if searches_text { self.written_calls(tools) } else { Vec::new() };
        let loses_call = !other.is_empty() && self.has_call_beside(reply, tools);
        for (complete_at_ms, call) in written.iter().filter(|(_, call)| tools.is_exit(&call.name)) {
            self.record_signal(call, *complete_at_ms, tools);
        }
        let reads_text = !written.is_empty();
        let only_exit = |directive: &Directive| {
            reads_text && directive.calls.iter().all(|call| tools.is_exit(&call.name))
        };

        // Check for failures.
        let reports = self.config.on_invalid_arguments == OnFailure::Report;
        let mut faults = if searches_text { self.hold_back.faults() } else { Vec::new() };
        let status = if reports { status_with_unparsed_call(status, &mut faults) } else { status };
        let calls: Vec<&RawCall> = if reads_text {
            written.iter().map(|(_, call)| call).filter(|call| !tools.is_exit(&call.name)).collect()
        } else {
            other
        };
        let reported_faults = if reports { faults.as_slice() } else { &[] };
        let count = calls.len() + reported_faults.len();
        let is_over_limit = self.hold_back.is_over_limit();
        let status =
            if is_over_limit { ReplyStatus::ServerError { error: too_many_calls() } } else { status };
        let has_call = count > 0 || !reply.calls.is_empty() || reads_text;
        let is_missing_call = finish == Some(FinishMeaning::Called) && !has_call;
        let is_empty = !has_call && ends_answer(&status, finish) && !self.has_text_in_turn();
        let asks_again = is_empty && !self.was_empty;
        let may_call = count > 0 || is_missing_call;
        let failure = closing
            .or_else(|| status_failure(&status, finish, cut))
            .or_else(|| looped.or_else(|| self.lines.finish()).map(loop_failure))
            .or_else(|| (may_call && reply.lost_frames > 0).then(|| lost_frame_failure(reply.lost_frames)))
            // The first problem of the text is reported.
            .or_else(|| {
                let is_unknown = |(_, call): &(u64, RawCall)| tools.called(&call.name).is_none();
                let is_first = |fault: &&Fault| !written.iter().take(fault.calls_before).any(is_unknown);
                faults.first().filter(|fault| !reports && is_first(fault)).map(fault_failure)
            })
            .or_else(|| if reports { None } else { unknown_failure(&calls, reads_text, tools) })
            .or_else(|| (is_empty && !asks_again).then(|| self.empty_failure(is_missing_call)).flatten())
            .or_else(|| (count > 0 && self.budget.affords(count) == 0).then(|| budget_failure(&self.config)));
        let checked: Vec<Checked> = match failure {
            None => calls.iter().map(|call| check(call, tools)).collect(),
            Some(_) => Vec::new(),
        };
        if let Some(failure) = failure.or_else(|| self.invalid_failure(&checked)) {
            let rest = self.hold_back.release(only_exit);
            self.emit_text(rest);
            self.finish_failed(failure);
            return;
        }
        let checked = checked.into_iter().map(Checked::with_received_text);
        let mut calls: Vec<(Option<&RawCall>, Checked)> = calls.into_iter().map(Some).zip(checked).collect();
        for fault in reported_faults.iter().rev() {
            let before = written.iter().take(fault.calls_before);
            let at = before.filter(|(_, call)| !tools.is_exit(&call.name)).count();
            calls.insert(at.min(calls.len()), (None, Checked::of_fault(fault)));
        }

        let rest = self.hold_back.release(|_| reads_text);
        self.emit_text(rest);
        if loses_call {
            self.warn(
                "the reply contains a call written as text beside its tool calls; only the latter are made",
            );
        }
        if asks_again {
            return self.ask_again();
        }
        if calls.is_empty() {
            let warning = is_missing_call.then_some("the server reported a tool call but did not send one");
            return self.end_without_calls(reply, is_empty.then_some(EMPTY_TWICE).or(warning), tools);
        }
        self.begin_batch(calls);
    }

    /// Requests an empty reply once more, in a turn of its own. It is not a part of the conversation.
    fn ask_again(&mut self) {
        self.was_empty = true;
        self.received = Received::default();
        self.count_retry();
        let state = self.state_after_reply(&Batch { calls: Vec::new(), affordable: 0 });
        self.reply_state = Some(ReplyState { is_empty: true, ..state });
        self.warn("the reply contains neither text nor a call; it is requested once more");
        self.phase = Phase::Ready;
    }

    /// Returns the failure of a request whose reply is empty for the second time. With a result or a signal, it may be
    /// complete: Anthropic documents empty replies after results. Reasoning may be the answer, too.
    fn empty_failure(&self, is_missing_call: bool) -> Option<Failure> {
        let has_output = self.tool_iterations > 0 || !self.signals.is_empty();
        if has_output || (!is_missing_call && !self.reasoning.is_empty()) {
            return None;
        }
        let (kind, detail) = if is_missing_call {
            let detail = "the server reported a tool call and sent neither a call nor text; its tool call parser may not \
                          fit the model";
            (FailureKind::MissingToolCall, detail)
        } else {
            (FailureKind::EmptyStream, EMPTY_TWICE)
        };
        Some(Failure::new(FailReason::UnknownError, kind, detail))
    }

    /// Ends a reply without normal calls. It completes the request, unless the server paused it.
    fn end_without_calls(&mut self, reply: &Reply, warning: Option<&str>, tools: &ToolSet) {
        let finish = reply.finish(self.config.dialect);
        // The server continues the reply when it gets it back.
        if finish == Some(FinishMeaning::Paused) && self.budget.left() > 0 {
            return self.continue_paused();
        }
        if let Some(warning) = warning {
            self.warn(warning);
        }
        if let Some(warning) = end_warning(reply, finish) {
            self.warn(&warning);
        }
        if reply.calls.is_empty() && self.calls_only_in_reasoning(tools) {
            self.warn("the model wrote a call in its reasoning, and no text; no tool was called");
        }
        let finish_reason = finish_reason(finish);
        self.finish(FinalState::Completed, finish_reason, None);
    }

    /// Whether the current turn has non-blank text, emitted or held back.
    fn has_text_in_turn(&self) -> bool {
        self.text.get(self.turn_text_start..).is_some_and(|text| !text.trim().is_empty())
            || self.hold_back.has_text()
    }

    /// Whether the current turn has a call in the model's reasoning, and no text.
    fn calls_only_in_reasoning(&self, tools: &ToolSet) -> bool {
        let reasoning = self.reasoning.get(self.turn_reasoning_start..).unwrap_or_default();
        let text = self.text.get(self.turn_text_start..).unwrap_or_default();
        let reads_text = self.config.fallback != Fallback::Off && !tools.is_empty();
        reads_text && calls_only_in_reasoning(reasoning, text)
    }

    fn warn(&mut self, message: &str) {
        self.events.push(Event::Warning { message: message.to_owned() });
    }

    /// Searches text of a call that the server could not parse for a call written as text. Returns the resulting
    /// status, and a loop in that text.
    fn read_failed_generation(&mut self, reply: &Reply, tools: &ToolSet) -> (ReplyStatus, Option<Loop>) {
        let ReplyStatus::ServerError { error: ServerError { failed_generation: Some(text), .. } } =
            &reply.status
        else {
            return (reply.status.clone(), None);
        };
        // The server recognised a call, so no marker is required.
        let forms = self.config.forms();
        let (hold_back, mut classifier) = self.text_reader(tools);
        let shown = hold_back.begin_apart(forms.with_unmarked(), &mut classifier);
        self.emit_text(shown);
        let looped = self.add_text(text, tools);
        let (hold_back, mut classifier) = self.text_reader(tools);
        let shown = hold_back.finish(false, &mut classifier);
        self.emit_text(shown);
        let reports = self.config.on_invalid_arguments == OnFailure::Report;
        let is_call =
            self.hold_back.calls().next().is_some() || (reports && !self.hold_back.faults().is_empty());
        (if is_call { ReplyStatus::Complete } else { reply.status.clone() }, looped)
    }

    /// Returns the calls written as text, each with the time when it was complete.
    fn written_calls(&self, tools: &ToolSet) -> Vec<(u64, RawCall)> {
        let read = |(complete_at_ms, call): (u64, &TextCall)| {
            let (name, arguments) = (call.name.clone(), coerce_call(call, tools));
            (
                complete_at_ms,
                RawCall {
                    index: 0,
                    id: None,
                    name,
                    arguments,
                    written: None,
                    repairs: call.repairs.clone(),
                    opaque: Map::new(),
                },
            )
        };
        self.hold_back.calls().map(read).collect()
    }

    /// Whether the text contains a call that is not one of the calls of the reply. Servers also send the text of a call.
    fn has_call_beside(&self, reply: &Reply, tools: &ToolSet) -> bool {
        let is_known = |call: &RawCall| {
            reply.calls.iter().any(|known| known.name == call.name && known.arguments == call.arguments)
        };
        let is_named =
            |fault: &Fault| reply.calls.iter().any(|known| fault.name.as_ref() == Some(&known.name));
        self.written_calls(tools).iter().any(|(_, call)| !is_known(call))
            || !self.hold_back.faults().iter().all(is_named)
    }

    fn invalid_failure(&self, checked: &[Checked]) -> Option<Failure> {
        if self.config.on_invalid_arguments == OnFailure::Report {
            return None;
        }
        let details: Vec<&str> = checked
            .iter()
            .filter_map(|call| match call {
                Checked::Valid { .. } => None,
                Checked::Invalid { error, .. } => Some(error.message.as_str()),
            })
            .collect();
        (!details.is_empty()).then(|| {
            Failure::new(FailReason::ToolParseError, FailureKind::InvalidArguments, details.join("\n"))
        })
    }

    fn record_signal(&mut self, call: &RawCall, emitted_at_ms: u64, tools: &ToolSet) {
        let (tool_name, arguments, arguments_error) = match check(call, tools) {
            Checked::Valid { name, arguments, repairs, written: _, plan: _ } => {
                self.emit_repairs(None, &name, repairs);
                (name, arguments.to_value(), None)
            }
            Checked::Invalid { name, arguments, error } => {
                let reason = match &call.arguments {
                    RawArguments::Malformed { error, .. } => error.clone(),
                    RawArguments::Object { .. } => error.message,
                };
                (name, Arc::unwrap_or_clone(arguments), Some(reason))
            }
        };
        let signal = Signal { tool_name, arguments, arguments_error, emitted_at_ms };
        self.signals.push(signal.clone());
        self.events.push(Event::Signal(signal));
    }

    /// Counts a repeated request of the driver.
    pub fn count_retry(&mut self) {
        self.count_usage(Some(Usage { retries: 1, ..Usage::default() }));
    }

    /// Emits an event for each repair of a call. Calls of exit tools have no id.
    pub(super) fn emit_repairs(&mut self, id: Option<&str>, name: &str, repairs: Vec<Repair>) {
        self.events.extend(repairs.into_iter().map(|Repair { path, kind }| Event::ArgumentsRepaired {
            id: id.map(str::to_owned),
            name: name.to_owned(),
            path,
            kind,
        }));
    }

    fn count_usage(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.usage.get_or_insert_default().add(usage);
        }
    }
}

fn too_many_calls() -> ServerError {
    let message = format!("the reply contains more than {MAX_CALLS} tool calls; the rest was not read");
    ServerError::new(ServerErrorKind::Server, message)
}

/// Returns the status of the reply without its exit calls, which never affect the other calls. `calls` are the other
/// calls.
fn status_without_exit_calls<'c>(
    status: ReplyStatus,
    mut calls: impl Iterator<Item = &'c RawCall>,
) -> ReplyStatus {
    match status {
        ReplyStatus::CallTruncated { is_over } if !calls.any(is_truncated) => {
            if is_over {
                ReplyStatus::Complete
            } else {
                ReplyStatus::Incomplete { cause: None }
            }
        }
        status => status,
    }
}

fn is_truncated(call: &RawCall) -> bool {
    matches!(call.arguments, RawArguments::Malformed { truncated: true, .. })
}

/// Returns the status without the error of a server that could not parse a call, which becomes a fault.
fn status_with_unparsed_call(status: ReplyStatus, faults: &mut Vec<Fault>) -> ReplyStatus {
    match status {
        ReplyStatus::ServerError { error } if error.kind == ServerErrorKind::UnparsedCall => {
            faults.push(Fault::of_server(error.message));
            ReplyStatus::Complete
        }
        status => status,
    }
}

/// Whether a reply ended like an answer, not at a limit.
fn ends_answer(status: &ReplyStatus, finish: Option<FinishMeaning>) -> bool {
    *status == ReplyStatus::Complete
        && matches!(finish, None | Some(FinishMeaning::Finished | FinishMeaning::Called))
}

/// Returns a warning about an end other than by the model or by the token limit.
fn end_warning(reply: &Reply, finish: Option<FinishMeaning>) -> Option<String> {
    let reason = reply.finish_reason.as_deref()?;
    let shown = shown_finish_reason(reason);
    match finish? {
        FinishMeaning::Filtered => {
            let reason = (reason != "content_filter").then(|| format!("`{shown}`"));
            let detail = reply.finish_detail.as_deref().map(shown_finish_detail);
            let warning = String::from("the server's content filter ended the reply");
            Some([Some(warning), reason, detail].into_iter().flatten().collect::<Vec<_>>().join(": "))
        }
        FinishMeaning::CutShort if reason == "model_context_window_exceeded" => {
            Some(format!("the context of the model is full, so the reply is cut short: `{shown}`"))
        }
        FinishMeaning::Paused => {
            Some(format!("the server paused the reply (`{shown}`), and the tool budget is exhausted"))
        }
        FinishMeaning::Finished | FinishMeaning::Called | FinishMeaning::CutShort | FinishMeaning::Failed => {
            None
        }
    }
}

/// Gives the signature of a first call that is an exit call to the first normal call. An exit call does not go back to the
/// server, and Gemini signs the first call only and requires its signature.
fn pass_signature_on(calls: &mut [RawCall], tools: &ToolSet) {
    let Some((first, rest)) = calls.split_first_mut() else { return };
    if tools.is_exit(&first.name)
        && let Some(next) = rest.iter_mut().find(|call| !tools.is_exit(&call.name))
        && next.opaque.is_empty()
    {
        next.opaque = std::mem::take(&mut first.opaque);
    }
}

fn lost_frame_failure(lost: usize) -> Failure {
    let what = if lost == 1 { String::from("an event") } else { format!("{lost} events") };
    Failure::new(
        FailReason::ToolParseError,
        FailureKind::LostFrame,
        format!(
            "{what} of the stream could not be decoded and may have contained a part of a call; no tool was called"
        ),
    )
}

/// Returns the failure for a reply that is not complete. `cut` is the call that was cut off.
fn status_failure(
    status: &ReplyStatus,
    finish: Option<FinishMeaning>,
    cut: Option<&RawCall>,
) -> Option<Failure> {
    let (reason, kind, detail) = match status {
        ReplyStatus::Complete => return None,
        ReplyStatus::CallTruncated { .. } => {
            (FailReason::ToolParseError, FailureKind::CallTruncated, truncated_detail(finish, cut))
        }
        ReplyStatus::ServerError { error } => return Some(server_failure(error)),
        ReplyStatus::Incomplete { cause } => (
            FailReason::UnknownError,
            FailureKind::StreamIncomplete,
            match cause {
                Some(cause) => format!("the reply was cut off: {cause}"),
                None => String::from("the stream ended before the server reported the end of the reply"),
            },
        ),
        ReplyStatus::Empty => (
            FailReason::UnknownError,
            FailureKind::EmptyStream,
            String::from("the server answered 200 with an empty stream"),
        ),
    };
    Some(Failure::new(reason, kind, detail))
}

fn server_failure(error: &ServerError) -> Failure {
    let kind = match error.kind {
        ServerErrorKind::ContextOverflow => FailureKind::ContextOverflow,
        ServerErrorKind::Unauthorized => FailureKind::Unauthorized,
        ServerErrorKind::Unavailable
        | ServerErrorKind::Loading
        | ServerErrorKind::QuotaExhausted
        | ServerErrorKind::Rejected
        | ServerErrorKind::NoTools
        | ServerErrorKind::Http => FailureKind::HttpError,
        ServerErrorKind::Temporary | ServerErrorKind::UnparsedCall | ServerErrorKind::Server => {
            FailureKind::ServerError
        }
    };
    let code = error.code.map(|code| format!("{code}: ")).unwrap_or_default();
    Failure::new(FailReason::UnknownError, kind, format!("{code}{}", error.message))
}

/// Describes which call was cut off, and why.
fn truncated_detail(finish: Option<FinishMeaning>, cut: Option<&RawCall>) -> String {
    let name = cut.map_or("a tool", |call| call.name.as_str());
    let advice = match finish_reason(finish) {
        FinishReason::MaxTokens => {
            ": the server's token limit was reached; raise :max-tokens in the worker's :params"
        }
        FinishReason::Stop | FinishReason::ContentFilter | FinishReason::Canceled | FinishReason::Failed => {
            ""
        }
    };
    format!("the reply ended inside the arguments of a call of `{name}`{advice}")
}

fn fault_failure(fault: &Fault) -> Failure {
    Failure::new(FailReason::ToolParseError, FailureKind::MalformedCall, &fault.why)
}

/// Returns the failure for calls of unknown tools.
fn unknown_failure(calls: &[&RawCall], reads_text: bool, tools: &ToolSet) -> Option<Failure> {
    let mut unknown = calls.iter().filter(|call| tools.called(&call.name).is_none()).peekable();
    unknown.peek()?;
    let names = unknown_names(unknown.map(|call| call.name.as_str()), tools);
    let what = if reads_text { "a call written as text names" } else { "the model called" };
    let detail = format!("{what} an unknown tool: {names}");
    Some(Failure::new(FailReason::ToolParseError, FailureKind::UnknownTool, detail))
}

fn loop_failure(found: Loop) -> Failure {
    let Loop { lines, chars, occurrences } = found;
    let what = if lines == 1 { String::from("a line") } else { format!("a cycle of {lines} lines") };
    Failure::new(
        FailReason::RepeatedLineLoop,
        "",
        format!("{what} of {chars} characters occurred {occurrences} times in a row"),
    )
}

fn finish_reason(server: Option<FinishMeaning>) -> FinishReason {
    match server {
        Some(FinishMeaning::CutShort) => FinishReason::MaxTokens,
        Some(FinishMeaning::Filtered) => FinishReason::ContentFilter,
        // The driver receives a failed reply as a server error.
        Some(
            FinishMeaning::Finished | FinishMeaning::Called | FinishMeaning::Paused | FinishMeaning::Failed,
        )
        | None => FinishReason::Stop,
    }
}
