//! Reads a reply: decodes bytes into events and passes them to the request machine, under the timers.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use deftool_chat::request::{Event, FailReason, Failure, FailureKind, FinalState};
use deftool_chat::{
    Body, BodyForm, ChatEvent, ChatRequest, Reply, ReplyStatus, ServerError, ServerErrorKind, StreamDecoder,
    StreamNotes, Tables, TransportEnd, classify_http_error, requires_call, truncation_warning,
};
use deftool_record::secrets::REDACTED;
use deftool_record::{Line, Redactor};
use deftool_script::prefetch;
use futures_util::StreamExt;
use serde_json::Value;
use tokio::time::Instant;

use super::failure::{is_page, of_transport};
use super::managed::is_lost;
use super::state::{Accepted, OpenResponse, ReplyEnd, RequestEnded, ServerRefusal, Turn};
use super::timers::StreamTimers;
use crate::driver::event_log::prefetch_end;
use crate::observer::Observation;
use crate::time::until;
use crate::transport::{Incoming, Outgoing, TransportError};

/// Time limit for a body to end after its last event.
const DONE_GRACE: Duration = Duration::from_millis(50);
/// Maximum size of an error body that is read, in bytes.
const MAX_ERROR_BODY: usize = 64 << 10;
/// Time limit for reading an error body. The status alone is sufficient.
const ERROR_BODY_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for the request that finds the reason for an empty stream.
const EXPLAIN_LIMIT: Duration = Duration::from_secs(10);

/// The reason why reading a reply stops.
enum Stop {
    /// The request ends with this failure. `None`: it was canceled.
    By(Option<Failure>),
    /// The request machine ended the request, or only waits for the end of the reply.
    ByMachine,
}

/// The state of reading a reply.
struct Reading {
    timers: StreamTimers,
    decoder: StreamDecoder,
}

impl Turn<'_> {
    /// Reads the reply to `request`, which was sent in `form`, and passes it to the request machine, unless the request
    /// can be sent again.
    pub(super) async fn read_reply(
        &mut self,
        accepted: Accepted<'_>,
        request: &ChatRequest,
        form: BodyForm,
    ) -> Result<ReplyEnd, RequestEnded> {
        let Accepted { mut open, body, streaming: _streaming } = accepted;
        let task = self.task;
        let status = open.incoming.status;
        let names = self.toolbox.tools.iter().map(|tool| tool.name.clone());
        let mut reading = Reading {
            timers: StreamTimers::new(task.shared.stream_limits(), open.sent),
            decoder: StreamDecoder::new(self.api, names).with_tables(self.tables()),
        };
        let end = match self.read_pieces(&mut open, &mut reading).await {
            Ok(end) => end,
            Err(stop) => {
                // Before the end is published: the slot drains first, and is then returned.
                drop(open);
                return Err(self.stop_reading(stop, reading));
            }
        };
        open.exchange.close();
        let error = match &end {
            TransportEnd::Clean => None,
            TransportEnd::Broken { error } => Some(error.clone()),
        };
        let is_ended = reading.decoder.has_finish_reason() || reading.decoder.is_done();
        let mut events = Vec::new();
        let notes = reading.decoder.finish(end, &mut events);
        if !is_ended && events.iter().any(is_broken) && is_lost(task, self.total).await {
            task.close(self.run, task.record.stop_reason());
            self.feed(&mut events);
            return Err(RequestEnded);
        }
        task.write(|at_ms| Line::End { at_ms, error });
        self.warn(&notes);
        let ended = events.last().and_then(|event| match event {
            ChatEvent::Ended { reply } => Some(reply),
            _ => None,
        });
        if let Some(reply) = ended {
            task.observe(Observation::Replied { reply, id: notes.id.as_deref() });
        }
        if let Some(reply) = ended.filter(|reply| reply.lost_frames > 0) {
            self.warn_lost_frames(reply.lost_frames);
        }
        if self.may_retry_hosted()
            && !reading.timers.any_token()
            && let Some(error) = overload(&events)
        {
            return Ok(ReplyEnd::Overloaded(error.clone()));
        }
        if ended.is_some_and(|reply| reply.status == ReplyStatus::Empty) {
            let probe = |turn: &Self| {
                let body = request.encode_body(BodyForm { stream: false, ..form });
                turn.outgoing(turn.attempt + 1, body)
            };
            // Boxed: rare, and large.
            return Err(Box::pin(self.fail_empty(status, notes, probe)).await?);
        }
        self.feed_last(&body, events);
        Ok(ReplyEnd::Taken)
    }

    /// Ends the request while its reply is read. Exit calls that are complete become signals.
    fn stop_reading(&mut self, stop: Stop, reading: Reading) -> RequestEnded {
        let mut events = Vec::new();
        let end = TransportEnd::Broken { error: String::from("reading the reply was stopped") };
        reading.decoder.finish(end, &mut events);
        match stop {
            Stop::By(failure) => self.task.close(self.run, failure),
            Stop::ByMachine => {}
        }
        self.feed(&mut events);
        RequestEnded
    }

    /// Reports the events of the stream that were lost.
    fn warn_lost_frames(&self, lost: usize) {
        let what = if lost == 1 { String::from("an event") } else { format!("{lost} events") };
        let url = self.url();
        let message = format!("{url}: {what} of the stream could not be decoded and may have contained text");
        self.task.publish_own(self.run, Event::Warning { message });
    }

    /// Reports repeated calls and unsupported items.
    fn warn(&self, notes: &StreamNotes) {
        let url = self.url();
        if notes.repeated_calls > 0 {
            let what = if notes.repeated_calls == 1 { "a call" } else { "calls" };
            let message = format!(
                "{url}: the server sent {what} twice with the same id, name and arguments; each runs once"
            );
            self.task.publish_own(self.run, Event::Warning { message });
        }
        if notes.opaque_is_too_large {
            let message =
                format!("{url}: the reasoning of the reply is larger than 4 MiB and is not sent back");
            self.task.publish_own(self.run, Event::Warning { message });
        }
        if !notes.foreign_items.is_empty() {
            let items = notes.foreign_items.join(", ");
            let message =
                format!("{url}: the reply contains {items}; only text and function calls are supported");
            self.task.publish_own(self.run, Event::Warning { message });
        }
    }

    async fn read_pieces(
        &mut self,
        open: &mut OpenResponse,
        reading: &mut Reading,
    ) -> Result<TransportEnd, Stop> {
        let task = self.task;
        let stopped = task.record.wait_until_reading_stops();
        // Set again only after it has elapsed: the deadline moves with each token.
        let timer = tokio::time::sleep_until(reading.timers.next());
        tokio::pin!(stopped, timer);
        let mut now = Instant::now();
        loop {
            // A body that is always ready, such as a recording's, must yield to other tasks.
            tokio::task::consume_budget().await;
            // Checked before each read: a flood of bytes without a token would otherwise starve the deadlines.
            if self.total.is_some_and(|total| total <= now) {
                return Err(Stop::By(Some(task.total_failure())));
            }
            // Bytes that are already received still count.
            let is_late = reading.timers.next() <= now
                && !reading.timers.extend(task.shared.active_for_one_stream(), now);
            let deadline = self.total.map_or(reading.timers.next(), |total| total.min(reading.timers.next()));
            if timer.is_elapsed() || deadline < timer.deadline() {
                timer.as_mut().reset(deadline);
            }
            let run = &*self.run;
            let body = &mut open.incoming.body;
            let next = poll_fn(|context| {
                // With a thousand streams, this state has left the cache since the last read.
                prefetch(&**body);
                prefetch(run);
                prefetch(&*task.record);
                prefetch(task);
                prefetch(&*reading);
                match stopped.as_mut().poll(context) {
                    Poll::Ready(()) => Poll::Ready(Err(Stop::By(task.record.stop_reason()))),
                    Poll::Pending => body.poll_next_unpin(context).map(Ok),
                }
            });
            let piece = tokio::select! {
                biased;
                piece = next => Some(piece?),
                () = &mut timer => None,
            };
            prefetch(reading.decoder.expected());
            now = Instant::now();
            let bytes = match piece {
                Some(Some(Ok(bytes))) => bytes,
                Some(Some(Err(TransportError::Broken { message }))) => {
                    return Ok(TransportEnd::Broken { error: message });
                }
                Some(Some(Err(error))) => return Err(Stop::By(of_transport(error))),
                Some(None) => return Ok(TransportEnd::Clean),
                None if is_late => return self.end_late(open, &reading.timers),
                None => continue,
            };
            let taken = self.take(&bytes, now, reading);
            // Also done if this chunk ends the request: a server that is generating detects a disconnect.
            if reading.timers.any_token() || reading.decoder.has_finish_reason() {
                open.exchange.close();
            }
            taken?;
            // Some servers keep the connection open after the last event. A connection that was read to its end can be
            // reused.
            if reading.decoder.is_done() {
                open.exchange.close();
                return match drain_body(&mut open.incoming).await {
                    Some(stopped) => Err(Stop::By(of_transport(stopped))),
                    None => Ok(TransportEnd::Clean),
                };
            }
            if is_late && reading.timers.next() <= now {
                return self.end_late(open, &reading.timers);
            }
        }
    }

    /// Ends a reply whose deadline has passed.
    fn end_late(&self, open: &mut OpenResponse, timers: &StreamTimers) -> Result<TransportEnd, Stop> {
        let Some(failure) = timers.failure(self.url()) else { return Ok(TransportEnd::Clean) };
        // Disconnect before the stall is reported.
        open.incoming.body = futures_util::stream::empty().boxed();
        self.task.shared.report_stall();
        Err(Stop::By(Some(failure)))
    }

    /// Processes a chunk of the body, received at `now`: decodes it, records it, and passes its events to the request
    /// machine.
    fn take(&mut self, bytes: &[u8], now: Instant, reading: &mut Reading) -> Result<(), Stop> {
        let Reading { timers, decoder } = reading;
        let task = self.task;
        // The text is appended to these after the bytes are decoded.
        task.record.prefetch_end();
        prefetch_end(self.run.text().as_bytes());
        let mut events = Vec::new();
        decoder.feed(bytes, &mut events);
        if !bytes.is_empty() {
            task.write_data(bytes, now);
        }
        if timers.on_bytes(&events, now) {
            task.observe(Observation::Chunk);
        }
        // A replay ends at the end of the recording.
        if decoder.has_finish_reason() && !task.record.clock.is_recorded() {
            timers.on_finish();
        }
        if let Some(ChatEvent::ToolCallDelta { name, size, index: _ }) = events.last() {
            task.record.set_partial_call(name, *size);
        }
        self.feed(&mut events);
        if self.run.outcome().is_some() || self.run.is_closing() { Err(Stop::ByMachine) } else { Ok(()) }
    }

    pub(super) fn feed(&mut self, events: &mut Vec<ChatEvent>) {
        let at_ms = self.task.record.clock.now_ms();
        for event in events.drain(..) {
            self.run.on_event(event, &self.toolbox.tools, at_ms);
        }
        self.task.publish(self.run);
    }

    /// Like [`Turn::feed`], for the events that end a reply. Warnings are published before the end.
    fn feed_last(&mut self, sent: &Body, events: Vec<ChatEvent>) {
        let at_ms = self.task.record.clock.now_ms();
        let signals = self.run.signals().len();
        let mut cut = None;
        for mut event in events {
            if let ChatEvent::Ended { reply } = &mut event {
                // A part without its secret is not what the server sent.
                let redactor = self.task.shared.transport.redactor();
                let is_kept = |part: &Value| !holds_secret(part, redactor);
                reply.opaque.retain(is_kept);
                reply.calls.iter_mut().for_each(|call| call.opaque.retain(|_, part| is_kept(part)));
                cut = reply.usage.and_then(|usage| truncation_warning(self.task.server, sent, usage));
            }
            self.run.on_event(event, &self.toolbox.tools, at_ms);
        }
        let calls = self.run.open_calls().next().is_some() || self.run.signals().len() > signals;
        let is_fine = self.run.outcome().is_none_or(|outcome| outcome.state == FinalState::Completed);
        let ignored = (requires_call(sent.get("tool_choice")) && !calls && is_fine).then(|| {
            String::from(
                "the model was required to call a tool but did not: the server may ignore `tool_choice`, or the \
                 reply ended before a call",
            )
        });
        for message in [cut, ignored].into_iter().flatten() {
            self.task.publish_own(self.run, Event::Warning { message });
        }
        self.task.publish(self.run);
    }

    /// Ends the request because the reply is empty. Sends `probe` to find the reason.
    async fn fail_empty(
        &mut self,
        status: u16,
        notes: StreamNotes,
        probe: impl FnOnce(&Self) -> Outgoing,
    ) -> Result<RequestEnded, RequestEnded> {
        let url = self.url();
        let detail = if let Some(api) = notes.other_api {
            let api = api.as_str();
            format!(
                "{url} returned HTTP {status} with a reply of another API, `{api}`: set the worker's `:api` to `{api}`, or \
                 correct the endpoint"
            )
        } else if let Some(body) = notes.body_start.filter(|body| !is_empty_stream(body)) {
            format!(
                "{url} returned HTTP {status} with a body that is not a reply: {body}; check the endpoint, which \
                 usually ends in `/v1`"
            )
        } else {
            let reason = self.explain_empty(probe(self)).await?;
            let found = if status == 204 { "without a body" } else { "with an empty stream" };
            format!("{url} returned HTTP {status} {found}{reason}")
        };
        Ok(self.fail(Failure::new(FailReason::UnknownError, FailureKind::EmptyStream, detail)))
    }

    /// Finds the reason for an empty reply with a success status: the same request without streaming often returns an
    /// error. Used only for the message: the request fails in any case.
    async fn explain_empty(&mut self, probe: Outgoing) -> Result<String, RequestEnded> {
        match self.send_within(probe, EXPLAIN_LIMIT).await? {
            Some(Ok(open)) if open.incoming.status >= 400 => {
                let status = open.incoming.status;
                let ServerRefusal { error, .. } = self.read_error(open).await?;
                Ok(format!("; the same request without streaming: HTTP {status}: {}", error.message))
            }
            Some(Err(error @ TransportError::Stopped { .. })) => Err(self.end_by_transport(error)),
            Some(Ok(mut open)) => {
                // Without streaming, the head is sent when the reply is complete.
                open.exchange.close();
                Ok(String::from("; check the server's log"))
            }
            Some(Err(_)) | None => Ok(String::from("; check the server's log")),
        }
    }

    /// Reads the start of an error body. The body is recorded in one piece, and only if it does not contain the API key
    /// in any form: a replay does not have the key and could not redact it.
    pub(super) async fn read_error(&mut self, mut open: OpenResponse) -> Result<ServerRefusal, RequestEnded> {
        let task = self.task;
        let status = open.incoming.status;
        let mut body = Vec::new();
        let deadline = Instant::now() + ERROR_BODY_LIMIT.min(task.shared.config.timers.stall);
        let mut error = None;
        while body.len() < MAX_ERROR_BODY {
            let piece = tokio::select! {
                biased;
                () = task.cancel.cancelled() => return Err(self.end_canceled()),
                () = until(self.total) => return Err(self.total_timeout()),
                piece = tokio::time::timeout_at(deadline, open.incoming.body.next()) => piece,
            };
            match piece {
                Ok(Some(Ok(bytes))) => body.extend(bytes),
                Ok(Some(Err(stopped @ TransportError::Stopped { .. }))) => {
                    return Err(self.end_by_transport(stopped));
                }
                Ok(Some(Err(failed))) => {
                    error = Some(failed.to_string());
                    break;
                }
                // The status is sufficient; do not wait for a stalled body.
                Ok(None) | Err(_) => break,
            }
        }
        let refusal = ServerRefusal {
            error: classify_http_error(self.tables(), status, &body),
            is_page: is_page(&body),
        };
        if !body.is_empty() {
            task.write_data(&body, Instant::now());
        }
        task.write(|at_ms| Line::End { at_ms, error });
        Ok(refusal)
    }
}

impl Turn<'_> {
    /// The tables that explain what the server sends.
    fn tables(&self) -> Tables {
        self.task.server.dialect.tables(&self.run.config().model)
    }
}

/// Reads the rest of the body after the last event, for a short time. Returns the error if a recorded request was
/// stopped there.
async fn drain_body(incoming: &mut Incoming) -> Option<TransportError> {
    let rest = async {
        loop {
            match incoming.body.next().await {
                Some(Ok(_)) => {}
                last => break last,
            }
        }
    };
    match tokio::time::timeout(DONE_GRACE, rest).await {
        Ok(Some(Err(error @ TransportError::Stopped { .. }))) => Some(error),
        Ok(_) | Err(_) => None,
    }
}

/// Whether a part of a reply contains the API key, or the mark of a redacted one.
fn holds_secret(part: &Value, redactor: &Redactor) -> bool {
    match part {
        Value::String(text) => text.contains(REDACTED) || redactor.is_in(text),
        Value::Array(parts) => parts.iter().any(|part| holds_secret(part, redactor)),
        Value::Object(members) => members.values().any(|part| holds_secret(part, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a reply ended before it was complete.
fn is_broken(event: &ChatEvent) -> bool {
    matches!(event, ChatEvent::Ended { reply } if matches!(
        reply.status,
        ReplyStatus::Incomplete { .. } | ReplyStatus::Empty | ReplyStatus::CallTruncated { .. }
    ))
}

/// Returns the error of a reply that contains nothing but a temporary error.
fn overload(events: &[ChatEvent]) -> Option<&ServerError> {
    match events {
        [ChatEvent::Progress { .. }, rest @ ..] => overload(rest),
        [ChatEvent::Ended { reply: Reply { status: ReplyStatus::ServerError { error }, calls, .. } }] => {
            Some(error).filter(|error| is_overload(error) && calls.is_empty())
        }
        _ => None,
    }
}

/// Whether a server is overloaded, or a gateway did not reach it.
fn is_overload(error: &ServerError) -> bool {
    match error.kind {
        ServerErrorKind::Unavailable | ServerErrorKind::Loading | ServerErrorKind::Temporary => true,
        ServerErrorKind::ContextOverflow
        | ServerErrorKind::QuotaExhausted
        | ServerErrorKind::Unauthorized
        | ServerErrorKind::Rejected
        | ServerErrorKind::UnparsedCall
        | ServerErrorKind::NoTools
        | ServerErrorKind::Http
        | ServerErrorKind::Server => false,
    }
}

/// Whether a body is an event stream without content: comments, `[DONE]`, chunks without a choice.
fn is_empty_stream(body: &str) -> bool {
    body.lines().map(str::trim).all(|line| match line.split_once(':') {
        Some(("data", data)) => {
            matches!(data.trim_start(), "" | "[DONE]") || data.trim_start().starts_with('{')
        }
        Some(("" | "event" | "id" | "retry", _)) => true,
        Some(_) => false,
        None => line.is_empty(),
    })
}
