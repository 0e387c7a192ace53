//! Connections that break, answers that never end, and excessive sizes.

use std::time::Duration;

use super::raw_events::{call_continuation, call_start, text_event, text_event_prefix};
use crate::answer::{Act, Answer, DONE, END, framed};
use crate::fault::{Fault, answer, answer_to_call};
use crate::model::EncodedReply;

pub(super) static TABLE: &[Fault] = &[
    answer(
        "rst-before-head",
        "the connection is reset before the first byte of the answer",
        "a server that crashes",
        |_| Answer::default().then(Act::Reset),
    ),
    answer(
        "fin-before-head",
        "the connection is closed before the first byte of the answer",
        "a server that crashes",
        |_| Answer::default().then(Act::Close),
    ),
    answer("rst-after-head", "the connection is reset after the head", "a server that crashes", |m| {
        m.head().then(Act::Reset)
    }),
    answer(
        "fin-after-head",
        "the connection is closed after the head",
        "llama-cpp-python on a bad grammar",
        |m| m.head().then(Act::Close),
    ),
    answer(
        "rst-mid-stream",
        "the connection is reset in the middle of the reply",
        "a server that is killed",
        |m| m.half(m.head()).then(Act::Reset),
    ),
    answer(
        "fin-mid-stream",
        "the connection is closed in the middle of the reply",
        "a server that is killed",
        |m| m.half(m.head()).then(Act::Close),
    ),
    answer(
        "eof-mid-stream",
        "the body ends cleanly in the middle of the reply",
        "proxies after a crash of the upstream server",
        |m| m.half(m.head()).end(),
    ),
    answer(
        "eof-mid-event",
        "the body ends cleanly in the middle of an event",
        "proxies after a crash of the upstream server",
        |m| {
            let event = text_event_prefix(m.format.api);
            m.half(m.head()).piece(event.get(..event.len() / 2).unwrap_or_default()).end()
        },
    ),
    answer_to_call(
        "eof-mid-call",
        "the body ends cleanly inside the arguments of a call",
        "proxies after a crash of the upstream server",
        |m| m.half_call(m.head()).end(),
    ),
    answer(
        "rst-after-finish",
        "the connection is reset after the finish reason",
        "a server that crashes after the reply",
        |m| without_end(m).then(Act::Reset),
    ),
    answer(
        "stays-open",
        "the body and the connection stay open after `[DONE]` (otherwise: after the final event)",
        "gateways",
        |m| m.body(m.head()).then(Act::Silence),
    ),
    answer(
        "stays-open-unsaid",
        "nothing is sent after the finish reason, and the connection stays open",
        "gateways",
        |m| without_end(m).then(Act::Silence),
    ),
    answer(
        "silence",
        "no answer is sent, and the connection stays open",
        "a server that hangs or is suspended",
        |_| Answer::silent(),
    ),
    answer("half-head", "half of the head is sent, then nothing", "a server that is suspended", |_| {
        Answer::default()
            .then(Act::Write(b"HTTP/1.1 200 OK\r\ncontent-type: text/ev".to_vec()))
            .then(Act::Silence)
    }),
    answer("headers-endless", "the head is endless", "an attack", |m| {
        Answer::default()
            .then(Act::Write(b"HTTP/1.1 200 OK\r\n".to_vec()))
            .then(endless(b"x-more: and more\r\n".to_vec(), m.every_or(20)))
    }),
    answer("head-huge", "the head has 10 MB", "an attack", |_| {
        Answer::default()
            .then(Act::Write(b"HTTP/1.1 200 OK\r\n".to_vec()))
            .then(Act::Repeat {
                bytes: format!("x-more: {}\r\n", "x".repeat(10_000)).into_bytes(),
                times: Some(1_000),
                every: Duration::ZERO,
            })
            .then(Act::Write(b"\r\n".to_vec()))
            .then(Act::Close)
    }),
    answer("silence-after-head", "the head is sent, then nothing", "a server that is suspended", |m| {
        m.head().then(Act::Silence)
    }),
    answer(
        "silence-mid-stream",
        "half of the reply is sent, then nothing",
        "a server that is suspended",
        |m| m.half(m.head()).then(Act::Silence),
    ),
    answer(
        "comments-for-ever",
        "the head is sent, then only comments",
        "a server that processes a long prompt",
        |m| m.head().then(endless(framed(b": ping\n\n"), m.every_or(1_000))),
    ),
    answer(
        "comments-mid-stream",
        "half of the reply is sent, then only comments",
        "a model that hangs",
        |m| m.half(m.head()).then(endless(framed(b": ping\n\n"), m.every_or(1_000))),
    ),
    answer(
        "empty-deltas-for-ever",
        "half of the reply is sent, then only chunks without text",
        "a model that hangs",
        |m| {
            let nothing = framed(&text_event(m.format.api, b""));
            m.half(m.head()).then(endless(nothing, m.every_or(1_000)))
        },
    ),
    answer(
        "error-silence",
        "500 and half of its body are sent, then nothing",
        "a server that is suspended",
        |m| m.head_of(500, "text/plain").piece("half a ").then(Act::Silence),
    ),
    answer("error-endless", "500 with an endless body", "an attack", |m| {
        m.head_of(500, "text/plain").then(Act::Endless(framed(b"no and again no, ")))
    }),
    answer("slow-bytes", "the body is sent at one byte per second", "a very slow network", |m| {
        let every = m.every_or(1_000);
        let slow = |answer: Answer, byte: u8| answer.then(Act::Write(framed(&[byte]))).then(Act::Wait(every));
        m.joined().into_iter().fold(m.head(), slow).end()
    }),
    answer("endless-stream", "the reply is endless", "a model without an end-of-text token", |m| {
        // The lines differ, so that they are not detected as a loop.
        let line = |number| framed(&text_event(m.format.api, (line(number) + "\\n").as_bytes()));
        let lines: Vec<Vec<u8>> = (0..200).map(line).collect();
        let every = m.every_or(20);
        let once =
            |answer: Answer, line: &Vec<u8>| answer.then(Act::Write(line.clone())).then(Act::Wait(every));
        let start = lines.iter().fold(m.half(m.head()), once);
        start.then(endless(lines.concat(), every))
    }),
    answer("line-repeated", "the reply repeats one line endlessly", "small models", |m| {
        let line = framed(&text_event(m.format.api, b"I will look at the sea again and then again.\\n"));
        let start = m.half(m.head()).piece(text_event(m.format.api, b"\\n"));
        start.then(endless(line, m.every_or(5)))
    }),
    answer("line-endless", "one event is an endless line", "an attack", |m| {
        m.half(m.head())
            .piece(text_event_prefix(m.format.api))
            .then(Act::Endless(framed(&b"and so on, ".repeat(10_000))))
    }),
    answer("text-huge", "the text has 100 MB", "a model that does not stop", |m| {
        let lines: Vec<String> = (0..30).map(|number| line(number).repeat(80) + "\\n").collect();
        let event = text_event(m.format.api, lines.concat().as_bytes());
        let times = 100_000_000 / event.len() as u64;
        let bytes = framed(&event);
        m.half(m.head())
            .then(Act::Repeat { bytes, times: Some(times), every: Duration::ZERO })
            .then(Act::Write(END.to_vec()))
    }),
    answer("arguments-huge", "the arguments have 100 MB", "a model that does not stop", |m| {
        let piece = "and so on, ".repeat(6_000);
        m.half(m.head())
            .piece(call_start(m.format.api))
            .then(Act::Repeat {
                bytes: framed(&call_continuation(m.format.api, &piece)),
                times: Some(100_000_000 / piece.len() as u64),
                every: Duration::ZERO,
            })
            .then(Act::Write(END.to_vec()))
    }),
];

/// The answer without `[DONE]` and the end of its body.
fn without_end(m: &EncodedReply) -> Answer {
    let pieces = m.pieces.iter().filter(|piece| piece.bytes != DONE.as_bytes());
    pieces.fold(m.head(), |answer, piece| answer.piece(&piece.bytes))
}

fn endless(bytes: Vec<u8>, every: Duration) -> Act {
    Act::Repeat { bytes, times: None, every }
}

/// Returns a line that differs from its neighbours, so that a sequence of them is not detected as a loop.
fn line(number: u32) -> String {
    format!("and {number} more, {}", number * 7919 % 1_000)
}
