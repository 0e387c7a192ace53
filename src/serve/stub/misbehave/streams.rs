//! Connections that break, answers that never end, and sizes that nobody expects.

use std::time::Duration;

use super::speech::{before_text, call_begins, call_goes_on, said};
use super::{Misbehaviour, answer, answer_to_call};
use crate::serve::stub::answer::{Act, Answer, DONE, END, framed};
use crate::serve::stub::material::Material;

pub(super) static TABLE: &[Misbehaviour] = &[
    answer(
        "rst-before-head",
        "the connection is reset before a byte of the answer",
        "a server that dies",
        |_| Answer::default().then(Act::Reset),
    ),
    answer(
        "fin-before-head",
        "the connection is closed before a byte of the answer",
        "a server that dies",
        |_| Answer::default().then(Act::Close),
    ),
    answer("rst-after-head", "the connection is reset after the head", "a server that dies", |m| {
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
        "the body ends well in the middle of the reply",
        "proxies whose upstream died",
        |m| m.half(m.head()).end(),
    ),
    answer(
        "eof-mid-event",
        "the body ends well in the middle of an event",
        "proxies whose upstream died",
        |m| {
            let event = before_text(m.form.api);
            m.half(m.head()).piece(event.get(..event.len() / 2).unwrap_or_default()).end()
        },
    ),
    answer_to_call(
        "eof-mid-call",
        "the body ends well inside the arguments of a call",
        "proxies whose upstream died",
        |m| m.half_a_call(m.head()).end(),
    ),
    answer(
        "rst-after-finish",
        "the connection is reset after the finish reason",
        "a server that dies late",
        |m| without_end(m).then(Act::Reset),
    ),
    answer(
        "stays-open",
        "the connection stays open after `[DONE]`, the body unended",
        "some gateways",
        |m| m.body(m.head()).then(Act::Silence),
    ),
    answer(
        "stays-open-unsaid",
        "nothing follows the finish reason, and the connection stays open",
        "some gateways",
        |m| without_end(m).then(Act::Silence),
    ),
    answer("silence", "nothing at all is answered", "a server that hangs, or is stopped", |_| {
        Answer::silent()
    }),
    answer("half-head", "half the head, then silence", "a server that is stopped", |_| {
        Answer::default()
            .then(Act::Write(b"HTTP/1.1 200 OK\r\ncontent-type: text/ev".to_vec()))
            .then(Act::Silence)
    }),
    answer("headers-endless", "the head never ends", "an attack", |m| {
        Answer::default()
            .then(Act::Write(b"HTTP/1.1 200 OK\r\n".to_vec()))
            .then(endless(b"x-more: and more\r\n".to_vec(), m.every_or(20)))
    }),
    answer("head-huge", "a head of 10 MB", "an attack", |_| {
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
    answer("silence-after-head", "the head, then silence", "a server that is stopped", |m| {
        m.head().then(Act::Silence)
    }),
    answer("silence-mid-stream", "half the reply, then silence", "a server that is stopped", |m| {
        m.half(m.head()).then(Act::Silence)
    }),
    answer(
        "comments-for-ever",
        "the head, then comments and no token",
        "a server that works on a long prompt",
        |m| m.head().then(endless(framed(b": ping\n\n"), m.every_or(1_000))),
    ),
    answer("comments-mid-stream", "half the reply, then comments and no token", "a model that hangs", |m| {
        m.half(m.head()).then(endless(framed(b": ping\n\n"), m.every_or(1_000)))
    }),
    answer("empty-deltas-for-ever", "half the reply, then chunks without text", "a model that hangs", |m| {
        let nothing = framed(&said(m.form.api, b""));
        m.half(m.head()).then(endless(nothing, m.every_or(1_000)))
    }),
    answer("error-silence", "500 and half its body, then silence", "a server that is stopped", |m| {
        m.head_of(500, "text/plain").piece("half a ").then(Act::Silence)
    }),
    answer("error-endless", "500 with a body that never ends", "an attack", |m| {
        m.head_of(500, "text/plain").then(Act::Endless(framed(b"no and again no, ")))
    }),
    answer("slow-bytes", "one byte a second", "a network near its end", |m| {
        let every = m.every_or(1_000);
        let slow = |answer: Answer, byte: u8| answer.then(Act::Write(framed(&[byte]))).then(Act::Wait(every));
        m.joined().into_iter().fold(m.head(), slow).end()
    }),
    answer("endless-stream", "tokens come for ever", "a model without an end of text", |m| {
        // Each line is another one, so that it is no loop but a flow.
        let line = |number| framed(&said(m.form.api, (line(number) + "\\n").as_bytes()));
        let lines: Vec<Vec<u8>> = (0..200).map(line).collect();
        let every = m.every_or(20);
        let once =
            |answer: Answer, line: &Vec<u8>| answer.then(Act::Write(line.clone())).then(Act::Wait(every));
        let begun = lines.iter().fold(m.half(m.head()), once);
        begun.then(endless(lines.concat(), every))
    }),
    answer("line-repeated", "the same line comes for ever", "small models", |m| {
        let line = framed(&said(m.form.api, b"I will look at the sea again and then again.\\n"));
        let begun = m.half(m.head()).piece(said(m.form.api, b"\\n"));
        begun.then(endless(line, m.every_or(5)))
    }),
    answer("line-endless", "one line of the stream never ends", "an attack", |m| {
        m.half(m.head())
            .piece(before_text(m.form.api))
            .then(Act::Endless(framed(&b"and so on, ".repeat(10_000))))
    }),
    answer("text-huge", "100 MB of text, as fast as they are read", "a model run wild", |m| {
        let lines: Vec<String> = (0..30).map(|number| line(number).repeat(80) + "\\n").collect();
        let event = said(m.form.api, lines.concat().as_bytes());
        let times = 100_000_000 / event.len() as u64;
        let bytes = framed(&event);
        m.half(m.head())
            .then(Act::Repeat { bytes, times: Some(times), every: Duration::ZERO })
            .then(Act::Write(END.to_vec()))
    }),
    answer("arguments-huge", "100 MB of arguments", "a model run wild", |m| {
        let piece = "and so on, ".repeat(6_000);
        m.half(m.head())
            .piece(call_begins(m.form.api))
            .then(Act::Repeat {
                bytes: framed(&call_goes_on(m.form.api, &piece)),
                times: Some(100_000_000 / piece.len() as u64),
                every: Duration::ZERO,
            })
            .then(Act::Write(END.to_vec()))
    }),
];

/// The answer without `[DONE]` and the end of its body.
fn without_end(m: &Material) -> Answer {
    let pieces = m.pieces.iter().filter(|piece| piece.bytes != DONE.as_bytes());
    pieces.fold(m.head(), |answer, piece| answer.piece(&piece.bytes))
}

fn endless(bytes: Vec<u8>, every: Duration) -> Act {
    Act::Repeat { bytes, times: None, every }
}

/// A line that is like no other near it, so that many of them are a flow and no loop.
fn line(number: u32) -> String {
    format!("and {number} more, {}", number * 7919 % 1_000)
}
