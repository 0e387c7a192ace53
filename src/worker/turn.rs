//! One model turn: a request out, a reply in, under every timer.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::drive::{Drive, seconds, until};
use super::echo::EchoGuard;
use super::record::Streaming;
use super::recording::Line;
use super::stream_timers::{StreamTimers, after};
use super::toolbox::Toolbox;
use super::transport::{Incoming, Outgoing, TransportError};
use crate::chat::{
    BodyForm, ChatEvent, ChatRequest, End, Reply, ReplyStatus, ServerError, ServerErrorKind, StreamDecoder,
    classify_http_error,
};
use crate::request::{Event, FailReason, Failure, Run, kind};

/// Tries of one turn, the first included.
const MAX_ATTEMPTS: u32 = 4;
/// Tries while a server says that it is loading its model: ten minutes and more.
const MAX_ATTEMPTS_LOADING: u32 = 130;
/// The longest wait between those.
const MAX_DELAY_LOADING: Duration = Duration::from_secs(5);
/// The first wait between tries; it doubles.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// The longest wait that a server may ask for; asked for more, the request fails and says so.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// How long a body may stay open after its last word.
const LAST_WORD_GRACE: Duration = Duration::from_millis(50);
/// As much of an error's body as is looked at.
const MAX_ERROR_BODY: usize = 64 << 10;
/// An error's body is given this long, however slowly it trickles: its status says enough.
const ERROR_BODY_LIMIT: Duration = Duration::from_secs(10);
/// How long the exit status of a managed server may take to come after its connection broke.
const EXIT_STATUS_LIMIT: Duration = Duration::from_millis(250);
/// A server that sent an empty stream is given this long to say why.
const EXPLAIN_LIMIT: Duration = Duration::from_secs(10);

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
    form: &mut BodyForm,
    total: Option<Instant>,
) {
    let (turn, _) = run.turn();
    let mut delay = FIRST_DELAY;
    let Some(_streaming) = reach_server(task, run, total).await else { return };
    for attempt in 1.. {
        let outgoing = Outgoing { turn, attempt, body: request.encode_body(*form) };
        let sent = send(task, run, outgoing, total).await;
        let again = match sent {
            None => return,
            Some(Ok(incoming)) if (200..300).contains(&incoming.status) => {
                // Should the reply turn out empty, this asks for the reason.
                let body = request.encode_body(BodyForm { stream: false, ..*form });
                let probe = Outgoing { turn, attempt: attempt + 1, body };
                return read_reply(task, run, toolbox, probe, incoming, total).await;
            }
            Some(Ok(incoming)) => {
                let Incoming { status, retry_after, .. } = incoming;
                let location = incoming.location.clone();
                let Some(body) = read_error_body(task, run, incoming, total).await else { return };
                let error = classify_http_error(status, &body);
                let is_loading = status == 503 && error.message.contains("Loading model");
                let is_retried = matches!(status, 408 | 409 | 429 | 503)
                    && (attempt < MAX_ATTEMPTS || (is_loading && attempt < MAX_ATTEMPTS_LOADING))
                    && retry_after.is_none_or(|wait| wait <= MAX_DELAY);
                match other_form(*form, status, &error.message) {
                    Some(form) => Again::As(form, error.message),
                    None if is_retried => {
                        let delay = if is_loading { delay.min(MAX_DELAY_LOADING) } else { delay };
                        let wait = retry_after.unwrap_or_else(|| jitter(delay, task.id_seed, turn, attempt));
                        Again::After(wait, format!("HTTP {status}: {}", error.message))
                    }
                    // The text of a call that the server could not parse may be a call all the same.
                    None if error.failed_generation.is_some() => {
                        let reply = Reply::failed(error);
                        let mut events = vec![ChatEvent::Ended { reply }];
                        return feed(task, run, toolbox, &mut events);
                    }
                    None => {
                        let url = task.shared.transport.url();
                        let failure = http_failure(url, status, &error, location.as_deref(), retry_after);
                        return task.fail(run, failure);
                    }
                }
            }
            Some(Err(TransportError::Connect { message, refused })) => {
                if !refused || attempt >= MAX_ATTEMPTS {
                    let failure = Failure::new(FailReason::ConnectFailed, kind::CONNECT_FAILED, message);
                    return task.fail(run, failure);
                }
                Again::After(jitter(delay / 2, task.id_seed, turn, attempt), message)
            }
            Some(Err(TransportError::Broken { .. })) if lost_server(task).await => return task.give_up(run),
            Some(Err(error)) => return end_by_transport(task, run, error),
        };
        match again {
            Again::As(next, reason) => {
                // For the later turns, too: the server will not have learned it by then.
                *form = next;
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

/// Waits until a managed server takes requests; from then on its loss is the request's. `None`: the request is over.
async fn reach_server<'t>(task: &'t Drive, run: &mut Run, total: Option<Instant>) -> Option<Streaming<'t>> {
    loop {
        let ready = tokio::select! {
            biased;
            () = task.cancel.cancelled() => {
                task.give_up(run);
                return None;
            }
            () = until(total) => {
                task.total_timeout(run);
                return None;
            }
            ready = task.shared.server_ready() => ready,
        };
        if let Err(not_ready) = ready {
            task.fail(run, Failure::new(FailReason::ServerDied, "", not_ready.to_string()));
            return None;
        }
        // Marked before the last look: a server that is lost now fails the request, one that was lost before is waited for.
        let streaming = task.record.stream();
        if let Some(Ok(())) = task.shared.server_ready().now_or_never() {
            return Some(streaming);
        }
    }
}

/// A managed server's stream broke: whether its process died, or is restarted, which is then what the request fails
/// with. Its exit status may come a little after its connection ended.
async fn lost_server(task: &Drive) -> bool {
    task.shared.is_managed() && tokio::time::timeout(EXIT_STATUS_LIMIT, task.cancel.cancelled()).await.is_ok()
}

/// Reads what follows the last word, for a little while. In a recording the request may have been stopped there.
async fn read_out(incoming: &mut Incoming) -> Option<TransportError> {
    let rest = async {
        loop {
            match incoming.body.next().await {
                Some(Ok(_)) => {}
                last => break last,
            }
        }
    };
    match tokio::time::timeout(LAST_WORD_GRACE, rest).await {
        Ok(Some(Err(error @ TransportError::Stopped { .. }))) => Some(error),
        Ok(_) | Err(_) => None,
    }
}

fn echoed_key(url: &str) -> Failure {
    let detail = format!("{url} sent the API key back; the reply was ended before it could be shown");
    Failure::new(FailReason::UnknownError, kind::SERVER_ERROR, detail)
}

fn pieces(count: usize) -> String {
    if count == 1 { String::from("a piece") } else { format!("{count} pieces") }
}

/// A wait between 3/4 and 5/4 of `delay`, so that many who were refused together do not come back together. It
/// hangs on the request's seed, so that a replay waits the same.
fn jitter(delay: Duration, seed: u64, turn: u32, attempt: u32) -> Duration {
    let mut random = fastrand::Rng::with_seed(seed ^ (u64::from(turn) << 32) ^ u64::from(attempt));
    delay.mul_f64(0.75 + random.f64() / 2.0)
}

/// The head of the response; `None`: the request is over.
async fn send(
    task: &Drive,
    run: &mut Run,
    outgoing: Outgoing,
    total: Option<Instant>,
) -> Option<Result<Incoming, TransportError>> {
    let default = Duration::from_secs(if task.shared.config.llama_cpp { 600 } else { 30 });
    let limit = task.shared.config.timers.headers.unwrap_or(default);
    let sent = send_within(task, run, outgoing, limit, total).await?;
    if sent.is_none() {
        task.shared.tell_stall();
        let url = task.shared.transport.url();
        let detail = format!("{url}: no response headers within {} (the worker's :headers)", seconds(limit));
        task.fail(run, Failure::new(FailReason::HeadersTimeout, kind::HEADERS_TIMEOUT, detail));
    }
    sent
}

/// As [`send`]; `Some(None)`: there was no head within `limit`.
async fn send_within(
    task: &Drive,
    run: &mut Run,
    outgoing: Outgoing,
    limit: Duration,
    total: Option<Instant>,
) -> Option<Option<Result<Incoming, TransportError>>> {
    let Outgoing { turn, attempt, ref body } = outgoing;
    task.write(|at_ms| Line::Request { turn, attempt, at_ms, body: body.clone() });
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
        sent = head_within(task, limit, task.shared.transport.send(outgoing)) => sent,
    };
    let Some(sent) = sent else { return Some(None) };
    match &sent {
        Ok(incoming) => task.write(|at_ms| Line::Response {
            at_ms,
            status: incoming.status,
            retry_after_ms: incoming.retry_after.map(|wait| wait.as_millis() as u64),
            location: incoming.location.clone(),
        }),
        Err(TransportError::Connect { message, refused }) => {
            task.write(|at_ms| Line::NoConnection { at_ms, message: message.clone(), refused: *refused });
        }
        Err(_) => {}
    }
    Some(Some(sent))
}

/// Waits for a head; a managed server that works for this request alone is given `limit` from when it last was seen to.
async fn head_within<T>(task: &Drive, limit: Duration, head: impl Future<Output = T>) -> Option<T> {
    let mut head = std::pin::pin!(head);
    let mut until = after(Instant::now(), limit);
    loop {
        if let Ok(head) = tokio::time::timeout_at(until, &mut head).await {
            return Some(head);
        }
        until = after(task.shared.worked_for_one()?, limit);
        if until <= Instant::now() {
            return None;
        }
    }
}

async fn read_reply(
    task: &Drive,
    run: &mut Run,
    toolbox: &Toolbox,
    probe: Outgoing,
    mut incoming: Incoming,
    total: Option<Instant>,
) {
    let mut decoder = StreamDecoder::new(toolbox.tools.iter().map(|tool| tool.name.clone()));
    let url = task.shared.transport.url();
    let mut timers = StreamTimers::new(&task.shared.config.timers);
    let mut guard = EchoGuard::default();
    let mut events = Vec::new();
    let end = loop {
        // A body that is always ready, a recording's for one, must leave the others their turn.
        tokio::task::consume_budget().await;
        // Looked at before each read: a flood of bytes without a token would never let the deadline have its turn.
        if timers.next() <= Instant::now() && !timers.prolong(task.shared.worked_for_one()) {
            match timers.failure(url) {
                Some(failure) => {
                    // Disconnected first.
                    drop(incoming);
                    task.shared.tell_stall();
                    return task.fail(run, failure);
                }
                None => break End::Clean,
            }
        }
        let deadline = timers.next();
        let piece = tokio::select! {
            biased;
            () = task.cancel.cancelled() => return task.give_up(run),
            () = until(total) => return task.total_timeout(run),
            piece = incoming.body.next() => Some(piece),
            () = tokio::time::sleep_until(deadline) => None,
        };
        let Some(piece) = piece else { continue };
        match piece {
            Some(Ok(bytes)) => {
                decoder.feed(&bytes, &mut events);
                if guard.completes_key(&events, task.shared.transport.as_ref()) {
                    return task.fail(run, echoed_key(url));
                }
                task.write_data(&bytes);
                timers.saw_bytes(&events);
                if decoder.has_finish_reason() {
                    timers.saw_finish();
                }
                feed(task, run, toolbox, &mut events);
                if run.outcome().is_some() {
                    return;
                }
                // Some servers keep the connection open after their last word; the others let it be used again.
                if decoder.is_done() {
                    if let Some(stopped) = read_out(&mut incoming).await {
                        return end_by_transport(task, run, stopped);
                    }
                    break End::Clean;
                }
            }
            Some(Err(TransportError::Broken { message })) => break End::Broken { error: message },
            Some(Err(error)) => return end_by_transport(task, run, error),
            None => break End::Clean,
        }
    };
    if !decoder.has_finish_reason() && !decoder.is_done() && lost_server(task).await {
        return task.give_up(run);
    }
    let error = match &end {
        End::Clean => None,
        End::Broken { error } => Some(error.clone()),
    };
    let notes = decoder.finish(end, &mut events);
    if guard.completes_key(&events, task.shared.transport.as_ref()) {
        return task.fail(run, echoed_key(url));
    }
    task.write(|at_ms| Line::End { at_ms, error });
    if notes.skipped_frames > 0 {
        let message = format!(
            "{url}: {} of the stream could not be read and may have held text",
            pieces(notes.skipped_frames)
        );
        task.publish_own(run, Event::Warning { message });
    }
    let empty = events
        .iter()
        .any(|event| matches!(event, ChatEvent::Ended { reply } if reply.status == ReplyStatus::Empty));
    if empty {
        let detail = if let Some(body) = notes.body_start.filter(|body| !is_empty_stream(body)) {
            format!(
                "{url} answered 200 with something that is no reply: {body}; is the endpoint right? It ends in /v1 \
                 as a rule"
            )
        } else {
            let Some(reason) = explain_empty(task, run, probe, total).await else { return };
            format!("{url} answered 200 with an empty stream{reason}")
        };
        return task.fail(run, Failure::new(FailReason::UnknownError, kind::EMPTY_STREAM, detail));
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

/// Whether a body is an event stream in which nothing was said: comments, `[DONE]`, chunks without a choice.
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

/// Why a server answered 200 and nothing: the same request without streaming often says it. Only for the detail: the
/// request fails whatever it returns. `None`: the request is over.
async fn explain_empty(
    task: &Drive,
    run: &mut Run,
    probe: Outgoing,
    total: Option<Instant>,
) -> Option<String> {
    match send_within(task, run, probe, EXPLAIN_LIMIT, total).await? {
        Some(Ok(incoming)) if incoming.status >= 400 => {
            let status = incoming.status;
            let body = read_error_body(task, run, incoming, total).await?;
            let message = classify_http_error(status, &body).message;
            Some(format!("; asked again without streaming, HTTP {status}: {message}"))
        }
        Some(Err(TransportError::Stopped { failure })) => {
            task.stop(run, failure);
            None
        }
        Some(Ok(_) | Err(_)) | None => Some(String::from("; its log may say why")),
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
    let deadline = Instant::now() + ERROR_BODY_LIMIT.min(task.shared.config.timers.stall);
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
            piece = tokio::time::timeout_at(deadline, incoming.body.next()) => piece,
        };
        match piece {
            Ok(Some(Ok(bytes))) => {
                task.write_data(&bytes);
                body.extend(bytes);
            }
            Ok(Some(Err(TransportError::Stopped { failure }))) => {
                task.stop(run, failure);
                return None;
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
        TransportError::Stopped { failure } => task.stop(run, failure),
        TransportError::Differs { .. } => {
            task.fail(run, Failure::new(FailReason::UnknownError, kind::REPLAY_DIFFERS, error.to_string()));
        }
        TransportError::Connect { message, .. } => {
            task.fail(run, Failure::new(FailReason::ConnectFailed, kind::CONNECT_FAILED, message));
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

fn http_failure(
    url: &str,
    status: u16,
    error: &ServerError,
    location: Option<&str>,
    retry_after: Option<Duration>,
) -> Failure {
    let kind = match error.kind {
        ServerErrorKind::ContextOverflow => kind::CONTEXT_OVERFLOW,
        ServerErrorKind::Unauthorized
        | ServerErrorKind::Unavailable
        | ServerErrorKind::Http
        | ServerErrorKind::Server => kind::HTTP_ERROR,
    };
    let advice = match (error.kind, status, location) {
        (ServerErrorKind::ContextOverflow, ..) => String::from("; shorten the prompt or enlarge the context"),
        (ServerErrorKind::Unauthorized, ..) => {
            String::from("; set the key in OPENAI_API_KEY or in the variable that :api-key-env names")
        }
        (_, 300..400, Some(location)) => {
            let endpoint = location.strip_suffix("/chat/completions").unwrap_or(location);
            format!("; it redirects, which is not followed: give {endpoint} as the endpoint")
        }
        (_, 404 | 405, _) => {
            String::from("; check the model's name and the endpoint, which ends in /v1 as a rule")
        }
        (_, _, _) if matches!(status, 408 | 409 | 429 | 503) => match retry_after {
            Some(wait) => format!("; the server asks to wait {}", seconds(wait)),
            None => String::from("; try again later"),
        },
        (_, 500.., _) => String::from("; the server's log may say more"),
        (_, _, _) => String::new(),
    };
    let said = if error.message == format!("HTTP status {status}") {
        String::new()
    } else {
        format!(": {}", error.message)
    };
    Failure::new(FailReason::UnknownError, kind, format!("{url}: HTTP {status}{said}{advice}"))
}
