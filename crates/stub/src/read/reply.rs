//! The form `(reply …)`.

use deftool_lang::spec::parse_duration;
use deftool_lang::syntax::{Datum, DatumKind};

use super::form::{Entry, Form, Reader, json_of};
use super::values::{ENDINGS, faults, headers};
use crate::reply::{MAX_TOKENS, Part, Reply, Usage};

const REPLY_KEYS: [&str; 13] = [
    ":text",
    ":reasoning",
    ":tokens",
    ":finish",
    ":usage",
    ":chunk",
    ":every",
    ":delay",
    ":then",
    ":misbehave",
    ":headers",
    ":when",
    ":repeat",
];
const REPLY_FORMS: [&str; 5] = ["call", "text", "reasoning", "wait", "expect"];

pub(super) fn reply(reader: &mut Reader<'_>, entries: Vec<Entry>) -> Reply {
    let mut reply = Reply::new();
    for entry in entries {
        match entry {
            Entry::Key { key, span, value } => match key.as_str() {
                ":text" => reply.parts.extend(reader.string(&key, value).map(Part::Text)),
                ":reasoning" => reply.parts.extend(reader.string(&key, value).map(Part::Reasoning)),
                ":tokens" => {
                    let count =
                        reader.count(&key, &value).map(|count| count.min(u64::from(MAX_TOKENS)) as u32);
                    reply.parts.extend(count.map(Part::Tokens));
                }
                ":finish" => reply.finish = reader.name(&key, &value).map(|word| word.replace('-', "_")),
                ":usage" => reply.usage = usage(reader, value),
                ":chunk" => reply.chunk = reader.count(&key, &value).map(|count| count as usize),
                ":every" => reply.every = reader.duration(&key, &value),
                ":delay" => reply.delay = reader.duration(&key, &value).unwrap_or_default(),
                ":then" => reply.ending = reader.word(&key, &value, &ENDINGS).unwrap_or_default(),
                ":misbehave" => reply.faults = faults(reader, value),
                ":headers" => reply.headers = headers(reader, &key, value),
                _ => reader.unknown(span, "key of a reply", &key, &REPLY_KEYS),
            },
            Entry::Item(Datum { kind: DatumKind::String(text), .. }) => reply.parts.push(Part::Text(text)),
            Entry::Item(datum) => {
                let Some(form) =
                    reader.form(datum, "text, or a call such as `(call \"look\" (:at \"sea\"))`")
                else {
                    continue;
                };
                match form.head.as_str() {
                    "call" => reply.parts.extend(call(reader, form)),
                    "text" => reply.parts.extend(only_string(reader, form).map(Part::Text)),
                    "reasoning" => reply.parts.extend(only_string(reader, form).map(Part::Reasoning)),
                    "wait" => {
                        let span = form.head_span;
                        let time = only_string(reader, form).and_then(|text| parse_duration(&text));
                        if time.is_none() {
                            reader.report(span, "`wait` expects a duration such as \"50ms\"");
                        }
                        reply.parts.extend(time.map(Part::Wait));
                    }
                    _ => reader.unknown(form.head_span, "form of a reply", &form.head, &REPLY_FORMS),
                }
            }
        }
    }
    reply
}

/// `(call "look" (:at "sea") :id "call_1")`. Arguments in a string are sent unchanged, valid JSON or not.
fn call(reader: &mut Reader<'_>, form: Form) -> Option<Part> {
    let (mut name, mut arguments, mut id) = (None, None, None);
    for entry in form.entries {
        match entry {
            Entry::Key { key, value, .. } if key == ":id" => id = reader.string(&key, value),
            Entry::Key { key, span, .. } => reader.unknown(span, "key of a call", &key, &[":id"]),
            Entry::Item(Datum { kind: DatumKind::String(text), .. }) if name.is_none() => name = Some(text),
            Entry::Item(Datum { kind: DatumKind::String(text), .. }) if arguments.is_none() => {
                arguments = Some(text);
            }
            Entry::Item(datum) if name.is_some() && arguments.is_none() => match json_of(&datum) {
                Some(json) => arguments = Some(json.to_string()),
                None => {
                    reader
                        .report(datum.span, "`call` expects arguments such as `(:at \"sea\")`, or a string");
                }
            },
            Entry::Item(datum) => reader.report(datum.span, "`call` expects a name and arguments"),
        }
    }
    if name.is_none() {
        reader.report(form.head_span, "missing tool name; write `(call \"look\" (:at \"sea\"))`");
    }
    Some(Part::Call { name: name?, arguments: arguments.unwrap_or_else(|| String::from("{}")), id })
}

/// `(:prompt 3 :completion 2 :cached 1)`
fn usage(reader: &mut Reader<'_>, value: Datum) -> Option<Usage> {
    let span = value.span;
    let (mut prompt, mut completion, mut cached) = (None, None, None);
    for entry in reader.entries(value, "`:usage` expects counts such as `(:prompt 3 :completion 2)`")? {
        match entry {
            Entry::Key { key, value, .. } if key == ":prompt" => prompt = reader.count(&key, &value),
            Entry::Key { key, value, .. } if key == ":completion" => completion = reader.count(&key, &value),
            Entry::Key { key, value, .. } if key == ":cached" => cached = reader.count(&key, &value),
            Entry::Key { key, span, .. } => {
                reader.unknown(span, "count", &key, &[":prompt", ":completion", ":cached"]);
            }
            Entry::Item(datum) => reader.report(datum.span, "expected `:prompt` or `:completion`"),
        }
    }
    let (Some(prompt), Some(completion)) = (prompt, completion) else {
        reader.report(span, "`:usage` expects both counts, as in `(:prompt 3 :completion 2)`");
        return None;
    };
    Some(Usage { prompt, completion, cached: cached.unwrap_or_default().min(prompt) })
}

fn only_string(reader: &mut Reader<'_>, form: Form) -> Option<String> {
    let Form { head, head_span, entries } = form;
    let mut entries = entries.into_iter();
    match (entries.next(), entries.next()) {
        (Some(Entry::Item(Datum { kind: DatumKind::String(text), .. })), None) => Some(text),
        _ => {
            reader.report(head_span, format!("`{head}` expects one string"));
            None
        }
    }
}
