//! Forms of fixed answers: `(error …)`, `(play …)`, `(raw …)`, `(page …)`.

use std::path::Path;
use std::time::Duration;

use deftool_lang::syntax::{Datum, DatumKind};
use deftool_lang::text::Span;
use serde_json::{Map, Value};

use super::form::{Entry, Form, Reader, json_of, number_of};
use super::values::{ENDINGS, headers};
use crate::answer::{Act, Answer};
use crate::model::Ending;
use crate::scenario::Page;

/// Returns the content of a file that a scenario plays, or the reason why it cannot be read.
pub(super) type Open<'o> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'o;

const ERROR_KEYS: [&str; 9] = [
    ":message",
    ":code",
    ":type",
    ":retry-after",
    ":retry-after-ms",
    ":headers",
    ":delay",
    ":when",
    ":repeat",
];

/// `(error 503 :message "Loading model" :retry-after 1)`
pub(super) fn error(reader: &mut Reader<'_>, span: Span, entries: Vec<Entry>) -> Answer {
    let (mut status, mut delay, mut message) = (None, Duration::ZERO, None);
    let mut error = Map::new();
    let mut own_headers = vec![(String::from("content-type"), String::from("application/json"))];
    for entry in entries {
        match entry {
            Entry::Item(datum) => match number_of(&datum).and_then(|number| u16::try_from(number).ok()) {
                Some(number) if (100..1_000).contains(&number) => status = Some(number),
                _ => {
                    reader.report(datum.span, "`error` expects a status such as 503");
                    status = Some(500);
                }
            },
            Entry::Key { key, span, value } => match key.as_str() {
                ":message" => message = reader.string(&key, value),
                ":code" | ":type" => match json_of(&value) {
                    Some(json) => {
                        error.insert(key.trim_start_matches(':').to_owned(), json);
                    }
                    None => reader.report(value.span, format!("`{key}` expects a string or a number")),
                },
                ":retry-after" | ":retry-after-ms" => {
                    let text = reader.scalar(&key, &value);
                    own_headers.extend(text.map(|text| (key.trim_start_matches(':').to_owned(), text)));
                }
                ":headers" => own_headers.extend(headers(reader, &key, value)),
                ":delay" => delay = reader.duration(&key, &value).unwrap_or_default(),
                _ => reader.unknown(span, "key of an error", &key, &ERROR_KEYS),
            },
        }
    }
    if status.is_none() {
        reader.report(span, "missing status; write `(error 503 :message \"Loading model\")`");
    }
    error.insert(String::from("message"), Value::String(message.unwrap_or_else(|| String::from("an error"))));
    let body = Value::Object(Map::from_iter([(String::from("error"), Value::Object(error))])).to_string();
    let headers: Vec<(&str, &str)> =
        own_headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Answer::whole(status.unwrap_or(500), &headers, &body).delayed(delay)
}

const PLAY_KEYS: [&str; 6] = [":status", ":type", ":every", ":then", ":when", ":repeat"];

/// `(play "answer.sse" :status 200 :type "text/event-stream" :every "20ms")`
pub(super) fn play(reader: &mut Reader<'_>, span: Span, entries: Vec<Entry>, open: &Open<'_>) -> Answer {
    let (mut file, mut status, mut kind, mut every) = (None, 200, None, Duration::ZERO);
    let mut ending = Ending::Whole;
    for entry in entries {
        match entry {
            Entry::Item(Datum { kind: DatumKind::String(name), span }) if file.is_none() => {
                let content =
                    open(&name).map_err(|why| reader.report(span, format!("cannot read `{name}`: {why}")));
                file = Some((name, content.unwrap_or_default()));
            }
            Entry::Item(datum) => reader.report(datum.span, "`play` expects one file name in a string"),
            Entry::Key { key, span, value } => match key.as_str() {
                ":status" => {
                    let number = reader.count(&key, &value).unwrap_or_default();
                    status = u16::try_from(number).unwrap_or(status);
                }
                ":type" => kind = reader.string(&key, value),
                ":every" => every = reader.duration(&key, &value).unwrap_or_default(),
                ":then" => ending = reader.word(&key, &value, &ENDINGS).unwrap_or_default(),
                _ => reader.unknown(span, "key of play", &key, &PLAY_KEYS),
            },
        }
    }
    let Some((name, content)) = file else {
        reader.report(span, "missing file name; write `(play \"answer.sse\")`");
        return Answer::silent();
    };
    let is_json = Path::new(&name).extension().is_some_and(|extension| extension == "json");
    let kind =
        kind.unwrap_or_else(|| String::from(if is_json { "application/json" } else { "text/event-stream" }));
    let mut answer = Answer::head(status, &[("content-type", &kind)]);
    for (index, event) in events(&content).into_iter().enumerate() {
        if index > 0 && !every.is_zero() {
            answer = answer.then(Act::Wait(every));
        }
        answer = answer.piece(event);
    }
    match ending {
        Ending::Whole | Ending::End => answer.end(),
        Ending::Close => answer.then(Act::Close),
        Ending::Reset => answer.then(Act::Reset),
        Ending::Silence => answer.then(Act::Silence),
    }
}

/// Splits a body after each blank line.
fn events(content: &[u8]) -> Vec<&[u8]> {
    let mut events = Vec::new();
    let mut rest = content;
    while let Some(at) = memchr::memmem::find(rest, b"\n\n") {
        let (event, after) = rest.split_at(at + 2);
        events.push(event);
        rest = after;
    }
    events.push(rest);
    events
}

/// `(raw "HTTP/1.1 200 OK\r\n\r\n" 255 0 :then silence)`: the raw bytes, including the head.
pub(super) fn raw(reader: &mut Reader<'_>, entries: Vec<Entry>) -> Answer {
    let mut bytes = Vec::new();
    let mut ending = Ending::Close;
    for entry in entries {
        match entry {
            Entry::Item(Datum { kind: DatumKind::String(text), .. }) => {
                bytes.extend_from_slice(text.as_bytes());
            }
            Entry::Item(datum) => match number_of(&datum).and_then(|number| u8::try_from(number).ok()) {
                Some(byte) => bytes.push(byte),
                None => reader.report(datum.span, "`raw` expects strings, or bytes as numbers from 0 to 255"),
            },
            Entry::Key { key, value, .. } if key == ":then" => {
                ending = reader.word(&key, &value, &ENDINGS).unwrap_or_default();
            }
            Entry::Key { key, span, .. } => {
                reader.unknown(span, "key of raw", &key, &[":then", ":when", ":repeat"]);
            }
        }
    }
    let answer = Answer::default().then(Act::Write(bytes));
    match ending {
        Ending::Whole => answer,
        Ending::End | Ending::Close => answer.then(Act::Close),
        Ending::Reset => answer.then(Act::Reset),
        Ending::Silence => answer.then(Act::Silence),
    }
}

/// `(page "/props" (:n-ctx 4096) :status 200)`. A string is served as plain text.
pub(super) fn page(reader: &mut Reader<'_>, form: Form) -> Option<Page> {
    let (mut path, mut body, mut status) = (None, None, 200);
    for entry in form.entries {
        match entry {
            Entry::Key { key, value, .. } if key == ":status" => {
                let number = reader.count(&key, &value).unwrap_or_default();
                status = u16::try_from(number).unwrap_or(status);
            }
            Entry::Key { key, span, .. } => reader.unknown(span, "key of a page", &key, &[":status"]),
            Entry::Item(Datum { kind: DatumKind::String(text), span }) if path.is_none() => {
                if !text.starts_with('/') {
                    reader.report(span, "`page` expects a path such as \"/props\"");
                }
                path = Some(text);
            }
            Entry::Item(datum) => match json_of(&datum) {
                Some(Value::String(text)) => body = Some(("text/plain", text)),
                Some(json) => body = Some(("application/json", json.to_string())),
                None => reader.report(datum.span, "`page` expects JSON such as `(:n-ctx 4096)`, or text"),
            },
        }
    }
    if path.is_none() {
        reader.report(form.head_span, "missing path; write `(page \"/props\" (:n-ctx 4096))`");
    }
    let (kind, body) = body.unwrap_or(("text/plain", String::new()));
    Some(Page { path: path?, answer: Answer::whole(status, &[("content-type", kind)], &body) })
}
