//! What a model says in one reply, and the chunks, events and bytes that it becomes.
//!
//! A reply becomes chunks (JSON), the chunks events (bytes), the events an answer (HTTP). At each of these steps the
//! misbehaviours that a reply is told to show have their turn, which is why they can be combined with any reply.

use std::time::Duration;

use serde_json::{Value, json};

use super::answer::{Act, Answer, DONE, END, event, framed};
use super::http::Received;
use super::misbehave::{Bend, Misbehaviour};

/// The model's name, where a request tells none.
pub(super) const MODEL: &str = "stub";
/// The longest run of [`Part::Tokens`].
pub(super) const MAX_TOKENS: u32 = 100_000;
/// Characters of arguments in one delta, unless a reply says otherwise.
const ARGUMENT_CHARS: usize = 12;

/// A reply.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub(super) parts: Vec<Part>,
    pub(super) finish: Option<String>,
    pub(super) usage: Option<(u64, u64)>,
    pub(super) chunk: Option<usize>,
    pub(super) every: Option<Duration>,
    pub(super) delay: Duration,
    pub(super) ending: Ending,
    pub(super) headers: Vec<(String, String)>,
    pub(super) misbehaviours: Vec<&'static Misbehaviour>,
}

/// One thing that is said.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Text(String),
    Reasoning(String),
    /// A call; the arguments as the model writes them, JSON or not.
    Call {
        name: String,
        arguments: String,
        id: Option<String>,
    },
    /// So many short words, a delta each.
    Tokens(u32),
    /// Nothing for a while.
    Wait(Duration),
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// As it should: finish reason, token counts if asked for, `[DONE]`, end of the body.
    #[default]
    Whole,
    /// The body ends before anything says that the reply is over.
    End,
    /// The connection is closed in the middle of the body.
    Close,
    /// The connection is reset.
    Reset,
    /// Nothing more comes, and the connection stays.
    Silence,
}

/// What a request asks of the form of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Form {
    pub(super) is_stream: bool,
    pub(super) has_usage: bool,
    pub(super) model: String,
}

impl Form {
    pub(super) fn of(request: &Received) -> Self {
        let is_true = |pointer| request.body.pointer(pointer).and_then(Value::as_bool).unwrap_or(false);
        let model = request.body.get("model").and_then(Value::as_str).unwrap_or(MODEL);
        Self {
            is_stream: is_true("/stream"),
            has_usage: is_true("/stream_options/include_usage"),
            // What a client sends is said again in every chunk.
            model: model.chars().take(100).collect(),
        }
    }
}

/// One chunk of a stream and the wait before it.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) wait: Duration,
    pub(super) json: Value,
}

/// Bytes of a body and the wait before them.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) wait: Duration,
    pub(super) bytes: Vec<u8>,
}

impl Piece {
    pub(super) fn now(bytes: impl Into<Vec<u8>>) -> Self {
        Self { wait: Duration::ZERO, bytes: bytes.into() }
    }
}

/// What an answer is made of.
#[derive(Debug)]
pub(super) struct Material {
    pub(super) is_stream: bool,
    pub(super) pieces: Vec<Piece>,
    pub(super) ending: Ending,
    pub(super) headers: Vec<(String, String)>,
    /// The wait that was asked for between pieces.
    pub(super) every: Option<Duration>,
}

impl Reply {
    /// A reply in which nothing is said yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.part(Part::Text(text.into()))
    }

    /// With reasoning.
    #[must_use]
    pub fn reasoning(self, text: impl Into<String>) -> Self {
        self.part(Part::Reasoning(text.into()))
    }

    /// With a call of the tool `name`.
    #[must_use]
    pub fn call(self, name: impl Into<String>, arguments: &Value) -> Self {
        self.part(Part::Call { name: name.into(), arguments: arguments.to_string(), id: None })
    }

    /// With a wait, after which the deltas go on.
    #[must_use]
    pub fn wait(self, time: Duration) -> Self {
        self.part(Part::Wait(time))
    }

    /// With a wait of so long before each delta.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = Some(every);
        self
    }

    /// With another ending.
    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// Misbehaving in this way, too.
    #[must_use]
    pub fn misbehaving(mut self, misbehaviour: &'static Misbehaviour) -> Self {
        self.misbehaviours.push(misbehaviour);
        self
    }

    fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// The answer that this reply is to a request.
    pub fn answer(&self, request: &Received) -> Answer {
        self.answer_in(&Form::of(request))
    }

    pub(super) fn answer_in(&self, form: &Form) -> Answer {
        let pieces = if form.is_stream { self.events(form) } else { vec![Piece::now(self.whole(form))] };
        let material = Material {
            is_stream: form.is_stream,
            pieces,
            ending: self.ending,
            headers: self.headers.clone(),
            every: self.every,
        };
        let bend = self.misbehaviours.iter().find_map(|misbehaviour| match misbehaviour.bend {
            Bend::Answer(bend) => Some(bend),
            Bend::Chunks(_) | Bend::Pieces(_) => None,
        });
        let answer = bend.map_or_else(|| material.plain(), |bend| bend(&material));
        if self.delay.is_zero() { answer } else { delayed(answer, self.delay) }
    }

    /// The events of the body.
    fn events(&self, form: &Form) -> Vec<Piece> {
        let mut chunks = self.chunks(form);
        for misbehaviour in &self.misbehaviours {
            if let Bend::Chunks(bend) = misbehaviour.bend {
                chunks = bend(chunks);
            }
        }
        let mut pieces: Vec<Piece> = chunks
            .into_iter()
            .map(|Chunk { wait, json }| Piece { wait, bytes: event(&json).into_bytes() })
            .collect();
        if self.ending == Ending::Whole {
            pieces.push(Piece::now(DONE));
        }
        for misbehaviour in &self.misbehaviours {
            if let Bend::Pieces(bend) = misbehaviour.bend {
                pieces = bend(pieces);
            }
        }
        pieces
    }

    fn chunks(&self, form: &Form) -> Vec<Chunk> {
        let every = self.every.unwrap_or_default();
        let choice = |delta: Value, finish: Value| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
            chunk_json(&form.model, json!([choice]))
        };
        let first = choice(json!({"role": "assistant", "content": null}), Value::Null);
        let mut chunks = vec![Chunk { wait: Duration::ZERO, json: first }];
        let mut wait = every;
        let mut calls = 0;
        let mut push = |wait: &mut Duration, delta: Value| {
            chunks.push(Chunk { wait: *wait, json: choice(delta, Value::Null) });
            *wait = every;
        };
        for part in &self.parts {
            match part {
                Part::Text(text) => {
                    for piece in self.cut_text(text) {
                        push(&mut wait, json!({"content": piece}));
                    }
                }
                Part::Reasoning(text) => {
                    for piece in self.cut_text(text) {
                        push(&mut wait, json!({"reasoning_content": piece}));
                    }
                }
                Part::Tokens(count) => {
                    for number in 1..=*count {
                        push(&mut wait, json!({"content": token(number)}));
                    }
                }
                Part::Call { name, arguments, id } => {
                    let function = json!({"name": name, "arguments": ""});
                    let id = call_id(id.as_deref(), calls);
                    let entry = json!({"index": calls, "id": id, "type": "function", "function": function});
                    push(&mut wait, json!({"tool_calls": [entry]}));
                    for piece in cut(arguments, self.chunk.unwrap_or(ARGUMENT_CHARS)) {
                        let entry = json!({"index": calls, "function": {"arguments": piece}});
                        push(&mut wait, json!({"tool_calls": [entry]}));
                    }
                    calls += 1;
                }
                Part::Wait(time) => wait += *time,
            }
        }
        if self.ending != Ending::Whole {
            return chunks;
        }
        chunks.push(Chunk { wait, json: choice(json!({}), json!(self.finish_reason())) });
        if form.has_usage || self.usage.is_some() {
            let mut json = chunk_json(&form.model, json!([]));
            if let Value::Object(members) = &mut json {
                members.insert(String::from("usage"), self.usage_json());
            }
            chunks.push(Chunk { wait: Duration::ZERO, json });
        }
        chunks
    }

    /// The reply in one piece, as it is without `stream`.
    fn whole(&self, form: &Form) -> String {
        let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
        for part in &self.parts {
            match part {
                Part::Text(piece) => text.push_str(piece),
                Part::Reasoning(piece) => reasoning.push_str(piece),
                Part::Tokens(count) => text.extend((1..=*count).map(token)),
                Part::Call { name, arguments, id } => {
                    let function = json!({"name": name, "arguments": arguments});
                    let id = call_id(id.as_deref(), calls.len());
                    calls.push(json!({"id": id, "type": "function", "function": function}));
                }
                Part::Wait(_) => {}
            }
        }
        let content = if text.is_empty() { Value::Null } else { Value::String(text) };
        let mut message = serde_json::Map::new();
        message.insert(String::from("role"), json!("assistant"));
        message.insert(String::from("content"), content);
        if !reasoning.is_empty() {
            message.insert(String::from("reasoning_content"), Value::String(reasoning));
        }
        if !calls.is_empty() {
            message.insert(String::from("tool_calls"), Value::Array(calls));
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": self.finish_reason()});
        let whole = json!({
            "id": ID, "object": "chat.completion", "created": CREATED, "model": form.model,
            "choices": [choice], "usage": self.usage_json(),
        });
        whole.to_string()
    }

    fn finish_reason(&self) -> &str {
        let has_call = self.parts.iter().any(|part| matches!(part, Part::Call { .. }));
        self.finish.as_deref().unwrap_or(if has_call { "tool_calls" } else { "stop" })
    }

    fn usage_json(&self) -> Value {
        let said: u64 = self.parts.iter().map(Part::tokens).sum();
        let (prompt, completion) = self.usage.unwrap_or((10, said.max(1)));
        json!({
            "prompt_tokens": prompt, "completion_tokens": completion,
            "total_tokens": prompt.saturating_add(completion),
        })
    }

    /// A word a delta, unless so many characters were asked for.
    fn cut_text<'t>(&self, text: &'t str) -> Vec<&'t str> {
        match self.chunk {
            Some(chars) => cut(text, chars),
            None => text.split_inclusive(' ').collect(),
        }
    }
}

impl Part {
    /// As many tokens as a tokenizer might make of it.
    fn tokens(&self) -> u64 {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text.split_whitespace().count() as u64,
            Self::Call { arguments, .. } => 4 + arguments.len() as u64 / 4,
            Self::Tokens(count) => u64::from(*count),
            Self::Wait(_) => 0,
        }
    }
}

impl Material {
    /// The head, of a stream or of JSON.
    pub(super) fn head(&self) -> Answer {
        let kind = if self.is_stream { "text/event-stream" } else { "application/json" };
        self.head_of(200, kind)
    }

    /// A head with another status or content type.
    pub(super) fn head_of(&self, status: u16, content_type: &str) -> Answer {
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers: Vec<(&str, &str)> = std::iter::once(("content-type", content_type)).chain(own).collect();
        Answer::head(status, &headers)
    }

    /// The answer without any misbehaviour.
    pub(super) fn plain(&self) -> Answer {
        self.end(self.body(self.head()))
    }

    /// `answer` with all pieces.
    pub(super) fn body(&self, answer: Answer) -> Answer {
        add(answer, &self.pieces)
    }

    /// `answer` with the first half of the pieces.
    pub(super) fn half(&self, answer: Answer) -> Answer {
        add(answer, self.pieces.get(..self.pieces.len() / 2).unwrap_or_default())
    }

    /// The body in one piece.
    pub(super) fn joined(&self) -> Vec<u8> {
        self.pieces.iter().flat_map(|piece| piece.bytes.iter().copied()).collect()
    }

    /// The pace of what trickles or never ends.
    pub(super) fn every_or(&self, ms: u64) -> Duration {
        self.every.unwrap_or(Duration::from_millis(ms))
    }

    fn end(&self, answer: Answer) -> Answer {
        match self.ending {
            Ending::Whole | Ending::End => answer.then(Act::Write(END.to_vec())),
            Ending::Close => answer.then(Act::Close),
            Ending::Reset => answer.then(Act::Reset),
            Ending::Silence => answer.then(Act::Silence),
        }
    }
}

fn add(mut answer: Answer, pieces: &[Piece]) -> Answer {
    for Piece { wait, bytes } in pieces {
        if !wait.is_zero() {
            answer = answer.then(Act::Wait(*wait));
        }
        if !bytes.is_empty() {
            answer = answer.then(Act::Write(framed(bytes)));
        }
    }
    answer
}

fn delayed(answer: Answer, delay: Duration) -> Answer {
    answer
        .acts()
        .iter()
        .fold(Answer::default().then(Act::Wait(delay)), |answer, act| answer.then(act.clone()))
}

const ID: &str = "chatcmpl-stub";
/// When the completion was made: always the same, so that the same request has the same answer.
const CREATED: u64 = 1_700_000_000;

pub(super) fn chunk_json(model: &str, choices: Value) -> Value {
    json!({
        "id": ID, "object": "chat.completion.chunk", "created": CREATED, "model": model, "choices": choices,
    })
}

/// A chunk with this delta.
pub(super) fn delta_chunk(delta: Value) -> Chunk {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
    Chunk { wait: Duration::ZERO, json: chunk_json(MODEL, json!([choice])) }
}

fn call_id(given: Option<&str>, index: usize) -> String {
    given.map_or_else(|| format!("call{index:05}"), str::to_owned)
}

/// A word and a blank, or the end of a line after every twentieth.
fn token(number: u32) -> String {
    let end = if number.is_multiple_of(20) { '\n' } else { ' ' };
    format!("t{number}{end}")
}

/// `text` in pieces of so many characters.
fn cut(text: &str, chars: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(chars.max(1)).map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(is_stream: bool) -> Form {
        Form { is_stream, has_usage: true, model: String::from("m") }
    }

    #[test]
    fn a_reply_says_the_same_streamed_and_whole() {
        let reply = Reply::new().text("one two").call("f", &json!({"a": "a rather long argument"})).text("!");
        let whole: Value = serde_json::from_str(&reply.whole(&form(false))).unwrap();
        let message = &whole["choices"][0]["message"];
        let (mut text, mut arguments, mut finish) = (String::new(), String::new(), String::new());
        for Chunk { json, .. } in reply.chunks(&form(true)) {
            let choice = &json["choices"][0];
            text += choice["delta"]["content"].as_str().unwrap_or_default();
            arguments +=
                choice["delta"]["tool_calls"][0]["function"]["arguments"].as_str().unwrap_or_default();
            finish += choice["finish_reason"].as_str().unwrap_or_default();
        }
        assert_eq!(message["content"], text);
        assert_eq!(message["tool_calls"][0]["function"]["arguments"], arguments);
        assert_eq!(
            (whole["choices"][0]["finish_reason"].as_str(), text.as_str()),
            (Some(&*finish), "one two!")
        );
    }

    #[test]
    fn what_is_cut_is_whole_when_put_together() {
        for chars in [0, 1, 2, 100] {
            assert_eq!(cut("aéb😀c", chars).concat(), "aéb😀c");
        }
        assert_eq!(cut("aéb", 2), ["aé", "b"]);
        assert!(cut("", 3).is_empty());
    }
}
