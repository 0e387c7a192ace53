//! One model turn: a request out, a reply in, under every timer.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;

use super::drive::{Drive, seconds, until};
use super::recording::Line;
use super::toolbox::Toolbox;
use super::transport::{Incoming, Outgoing, TransportError};
use crate::chat::{
    BodyForm, ChatEvent, ChatRequest, End, ReplyStatus, ServerError, ServerErrorKind, StreamDecoder,
    classify_http_error,
};
use crate::request::{Event, FailReason, Failure, Run, kind};

/// Tries of one turn, the first included.
const MAX_ATTEMPTS: u32 = 4;
/// The first wait between tries; it doubles.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// The longest wait that a server may ask for.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// How long a body may stay open after its last word.
const LAST_WORD_GRACE: Duration = Duration::from_millis(50);
/// As much of an error's body as is looked at.
const MAX_ERROR_BODY: usize = 64 << 10;

/// How one try ended, where the turn is not over by it.
enum Again {
    /// The same request again, after a while.
    After(Duration, String),
    /// Another form of the same request, at once.
    As(BodyForm, String),
}

/// Sends `request` and feeds the reply to `run`, until the reply is over or the request is.
pub(super) async fn stream(
    task: &Drive,
    run: &mut Run,
    toolbox: &Toolbox,
    request: ChatRequest,
    total: Option<Instant>,
) {
    let (turn, _) = run.turn();
    let mut form = BodyForm::default();
    let mut delay = FIRST_DELAY;
    for attempt in 1.. {
        let outgoing = Outgoing { turn, attempt, body: request.encode_body(form) };
        let sent = send(task, run, outgoing, total).await;
        let again = match sent {
            None => return,
            Some(Ok(incoming)) if (200..300).contains(&incoming.status) => {
                return read_reply(task, run, toolbox, &request, incoming, total).await;
            }
            Some(Ok(incoming)) => {
                let status = incoming.status;
                let wait = incoming.retry_after.unwrap_or(delay).min(MAX_DELAY);
                let Some(body) = read_error_body(task, run, incoming, total).await else { return };
                let error = classify_http_error(status, &body);
                match other_form(form, status, &error.message) {
                    Some(form) => Again::As(form, error.message),
                    None if matches!(status, 408 | 409 | 429 | 503) && attempt < MAX_ATTEMPTS => {
                        Again::After(wait, format!("HTTP {status}: {}", error.message))
                    }
                    None => return task.fail(run, http_failure(status, &error)),
                }
            }
            Some(Err(TransportError::Connect { message, refused })) => {
                if !refused || attempt >= MAX_ATTEMPTS {
                    let failure = Failure::new(FailReason::ConnectFailed, "connect_failed", message);
                    return task.fail(run, failure);
                }
                Again::After(delay / 2, message)
            }
            Some(Err(error)) => return end_by_transport(task, run, error),
        };
        match again {
            Again::As(next, reason) => {
                form = next;
                task.publish_own(run, Event::Retry { attempt: attempt + 1, delay_ms: 0, detail: reason });
            }
            Again::After(wait, reason) => {
                let delay_ms = wait.as_millis() as u64;
                task.publish_own(run, Event::Retry { attempt: attempt + 1, delay_ms, detail: reason });
                // A replay has no delays.
                let wait = if task.clock.is_recorded() { Duration::ZERO } else { wait };
                tokio::select! {
                    biased;
                    () = task.cancel.cancelled() => return task.give_up(run),
                    () = until(total) => return task.total_timeout(run),
                    () = tokio::time::sleep(wait) => {}
                }
                delay = (delay * 2).min(MAX_DELAY);
            }
        }
    }
}

/// The head of the response; `None`: the request is over.
async fn send(
    task: &Drive,
    run: &mut Run,
    outgoing: Outgoing,
    total: Option<Instant>,
) -> Option<Result<Incoming, TransportError>> {
    let Outgoing { turn, attempt, ref body } = outgoing;
    task.write(|at_ms| Line::Request { turn, attempt, at_ms, body: body.clone() });
    let timers = &task.shared.config.timers;
    let default = Duration::from_secs(if task.shared.config.llama_cpp { 600 } else { 30 });
    let limit = timers.headers.unwrap_or(default);
    let sent = tokio::select! {
        biased;
        () = task.cancel.cancelled() => {
            task.give_up(run);
            return None;
        }
        () = until(total) => {
            task.total_timeout(run);
            return None;
        }
        sent = tokio::time::timeout(limit, task.shared.transport.send(outgoing)) => sent,
    };
    let Ok(sent) = sent else {
        let detail = format!("no response headers within {} (the worker's :headers)", seconds(limit));
        task.fail(run, Failure::new(FailReason::HeadersTimeout, "headers_timeout", detail));
        return None;
    };
    match &sent {
        Ok(incoming) => task.write(|at_ms| Line::Response {
            at_ms,
            status: incoming.status,
            retry_after_ms: incoming.retry_after.map(|wait| wait.as_millis() as u64),
        }),
        Err(TransportError::Connect { message, refused }) => {
            task.write(|at_ms| Line::NoConnection { at_ms, message: message.clone(), refused: *refused });
        }
        Err(_) => {}
    }
    Some(sent)
}

/// The deadlines of a stream: any byte moves the first, only tokens and progress move the second.
struct StreamTimers<'a> {
    timers: &'a crate::spec::Timers,
    byte: Instant,
    token: Instant,
    any_token: bool,
}

impl<'a> StreamTimers<'a> {
    fn new(timers: &'a crate::spec::Timers) -> Self {
        let now = Instant::now();
        Self { timers, byte: now + timers.stall, token: now + timers.first_token, any_token: false }
    }

    fn saw_bytes(&mut self, events: &[ChatEvent]) {
        let now = Instant::now();
        self.byte = now + self.timers.stall;
        for event in events {
            match event {
                ChatEvent::Text { .. } | ChatEvent::Reasoning { .. } | ChatEvent::ToolCallDelta { .. } => {
                    self.any_token = true;
                    self.token = now + self.timers.token_stall;
                }
                ChatEvent::Progress { .. } if !self.any_token => self.token = now + self.timers.first_token,
                ChatEvent::Progress { .. } | ChatEvent::Ended { .. } => {}
            }
        }
    }

    fn next(&self) -> Instant {
        self.byte.min(self.token)
    }

    /// The failure of the deadline that passed.
    fn failure(&self) -> Failure {
        if self.byte <= self.token {
            let detail = format!("no byte for {} (the worker's :stall)", seconds(self.timers.stall));
            return Failure::new(FailReason::StallTimeout, "stall_timeout", detail);
        }
        if self.any_token {
            let detail =
                format!("no token for {} (the worker's :token-stall)", seconds(self.timers.token_stall));
            return Failure::new(FailReason::StallTimeout, kind::TOKEN_STALL, detail);
        }
        let detail =
            format!("no token within {} (the worker's :first-token)", seconds(self.timers.first_token));
        Failure::new(FailReason::StallTimeout, kind::FIRST_TOKEN_TIMEOUT, detail)
    }
}

async fn read_reply(
    task: &Drive,
    run: &mut Run,
    toolbox: &Toolbox,
    request: &ChatRequest,
    mut incoming: Incoming,
    total: Option<Instant>,
) {
    let mut decoder = StreamDecoder::new(toolbox.tools.iter().map(|tool| tool.name.clone()));
    let mut timers = StreamTimers::new(&task.shared.config.timers);
    let mut events = Vec::new();
    let end = loop {
        let deadline = timers.next();
        let piece = tokio::select! {
            biased;
            () = task.cancel.cancelled() => return task.give_up(run),
            () = until(total) => return task.total_timeout(run),
            piece = incoming.body.next() => piece,
            () = tokio::time::sleep_until(deadline) => return task.fail(run, timers.failure()),
        };
        match piece {
            Some(Ok(bytes)) => {
                if let Some(recorder) = &task.recorder {
                    recorder.data(task.clock.now_ms(), &bytes);
                }
                decoder.feed(&bytes, &mut events);
                timers.saw_bytes(&events);
                feed(task, run, toolbox, &mut events);
                if run.outcome().is_some() {
                    return;
                }
                // Some servers keep the connection open after their last word; the others let it be used again.
                if decoder.is_done() {
                    let rest = async { while let Some(Ok(_)) = incoming.body.next().await {} };
                    let _ = tokio::time::timeout(LAST_WORD_GRACE, rest).await;
                    break End::Clean;
                }
            }
            Some(Err(TransportError::Broken { message })) => break End::Broken { error: message },
            Some(Err(error)) => return end_by_transport(task, run, error),
            None => break End::Clean,
        }
    };
    let error = match &end {
        End::Clean => None,
        End::Broken { error } => Some(error.clone()),
    };
    task.write(|at_ms| Line::End { at_ms, error });
    let notes = decoder.finish(end, &mut events);
    let empty = events
        .iter()
        .any(|event| matches!(event, ChatEvent::Ended { reply } if reply.status == ReplyStatus::Empty));
    if empty {
        let detail = match notes.body_start {
            Some(body) => format!("the server answered 200 with something else than a reply: {body}"),
            None => explain_empty(task, run, request, total).await,
        };
        if run.outcome().is_none() {
            task.fail(run, Failure::new(FailReason::UnknownError, kind::EMPTY_STREAM, detail));
        }
        return;
    }
    if let (Some(error), Some(ChatEvent::Ended { reply })) = (notes.transport_error, events.last())
        && reply.status == ReplyStatus::Incomplete
    {
        // The machine would know only that the reply is not whole.
        let detail = format!("the reply was cut off: {error}");
        events.pop();
        feed(task, run, toolbox, &mut events);
        return task.fail(run, Failure::new(FailReason::UnknownError, kind::STREAM_INCOMPLETE, detail));
    }
    feed(task, run, toolbox, &mut events);
}

fn feed(task: &Drive, run: &mut Run, toolbox: &Toolbox, events: &mut Vec<ChatEvent>) {
    let at_ms = task.clock.now_ms();
    for event in events.drain(..) {
        run.on_event(event, &toolbox.tools, at_ms);
    }
    task.publish(run);
}

/// Why a server answered 200 and nothing: the same request without streaming often says it. Only for the detail.
async fn explain_empty(task: &Drive, run: &mut Run, request: &ChatRequest, total: Option<Instant>) -> String {
    let silent = String::from("the server answered 200 with an empty stream");
    let (turn, _) = run.turn();
    let form = BodyForm { stream: false, ..BodyForm::default() };
    let outgoing = Outgoing { turn, attempt: MAX_ATTEMPTS + 1, body: request.encode_body(form) };
    match send(task, run, outgoing, total).await {
        Some(Ok(incoming)) if incoming.status >= 400 => {
            let status = incoming.status;
            let body = read_error_body(task, run, incoming, total).await.unwrap_or_default();
            format!(
                "{silent}; asked again without streaming, HTTP {status}: {}",
                classify_http_error(status, &body).message
            )
        }
        _ => silent,
    }
}

/// The start of an error's body; `None`: the request is over.
async fn read_error_body(
    task: &Drive,
    run: &mut Run,
    mut incoming: Incoming,
    total: Option<Instant>,
) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    let stall = task.shared.config.timers.stall;
    let mut error = None;
    while body.len() < MAX_ERROR_BODY {
        let piece = tokio::select! {
            biased;
            () = task.cancel.cancelled() => {
                task.give_up(run);
                return None;
            }
            () = until(total) => {
                task.total_timeout(run);
                return None;
            }
            piece = tokio::time::timeout(stall, incoming.body.next()) => piece,
        };
        match piece {
            Ok(Some(Ok(bytes))) => {
                if let Some(recorder) = &task.recorder {
                    recorder.data(task.clock.now_ms(), &bytes);
                }
                body.extend(bytes);
            }
            Ok(Some(Err(failed))) => {
                error = Some(failed.to_string());
                break;
            }
            // The status says enough; a body that stalls is not waited for.
            Ok(None) | Err(_) => break,
        }
    }
    task.write(|at_ms| Line::End { at_ms, error });
    Some(body)
}

fn end_by_transport(task: &Drive, run: &mut Run, error: TransportError) {
    match error {
        TransportError::Stopped { failure: Some(failure) } => task.fail(run, failure),
        TransportError::Stopped { failure: None } => task.give_up(run),
        TransportError::Differs { .. } => {
            task.fail(run, Failure::new(FailReason::UnknownError, "replay_differs", error.to_string()));
        }
        TransportError::Connect { message, .. } => {
            task.fail(run, Failure::new(FailReason::ConnectFailed, "connect_failed", message));
        }
        TransportError::Broken { message } => {
            task.fail(run, Failure::new(FailReason::UnknownError, kind::STREAM_INCOMPLETE, message));
        }
    }
}

/// What to send instead, when a server refuses a field by name. Once each.
fn other_form(form: BodyForm, status: u16, message: &str) -> Option<BodyForm> {
    if !matches!(status, 400 | 422) {
        return None;
    }
    if form.include_usage && message.contains("stream_options") {
        return Some(BodyForm { include_usage: false, ..form });
    }
    if !form.max_completion_tokens
        && message.contains("max_tokens")
        && message.contains("max_completion_tokens")
    {
        return Some(BodyForm { max_completion_tokens: true, ..form });
    }
    None
}

fn http_failure(status: u16, error: &ServerError) -> Failure {
    let message = &error.message;
    let (kind, advice) = match error.kind {
        ServerErrorKind::ContextOverflow => {
            (kind::CONTEXT_OVERFLOW, "; shorten the prompt or enlarge the context")
        }
        ServerErrorKind::Unauthorized => {
            (kind::HTTP_ERROR, "; set the key in OPENAI_API_KEY or :api-key-env")
        }
        ServerErrorKind::Unavailable => (kind::HTTP_ERROR, "; try again later"),
        ServerErrorKind::Http | ServerErrorKind::Server => (kind::HTTP_ERROR, ""),
    };
    Failure::new(FailReason::UnknownError, kind, format!("HTTP {status}: {message}{advice}"))
}
