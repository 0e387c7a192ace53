//! The tool calls of a recording, as the model made them: out of the replies themselves, so that calls that failed, exit
//! calls and calls written as text are among them.
//!
//! Nothing is run and nothing is decided: whether a call was valid is for whoever holds the schemas.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::recording::{Line, RecordedRequest, Recording};
use crate::chat::fallback::{Candidate, Forms, Piece, Scanner, TextCall};
use crate::chat::{Api, ChatEvent, End, RawArguments, Reply, StreamDecoder};
use crate::request::settle_written;

/// A call that a model made.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedToolCall {
    /// The line of the recording where it begins, from 1; of a call written as text, where it is whole.
    pub line: usize,
    /// Which request of the recording, from 1; 0 in a dump.
    pub request: usize,
    /// The tool, as the model wrote it.
    pub name: String,
    /// The arguments.
    pub arguments: RawArguments,
    /// Whether it was written as text.
    pub as_text: bool,
    /// The tool's definition as it was offered; `None`: there was none of that name.
    pub definition: Option<Arc<Value>>,
    /// Whether it was an exit call, where the recording tells.
    pub was_exit: Option<bool>,
}

impl RecordedToolCall {
    /// A call that was noted elsewhere than in a recording. Arguments may be JSON text.
    pub fn dumped(line: usize, name: &str, arguments: Value) -> Self {
        let malformed = |text: String, error: &str| RawArguments::Malformed { text, error: error.to_owned() };
        let arguments = match arguments {
            Value::Object(value) => RawArguments::Object { value },
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(value) => RawArguments::Object { value },
                Err(error) => malformed(text, &error.to_string()),
            },
            other => malformed(other.to_string(), "not a JSON object"),
        };
        let name = name.to_owned();
        Self { line, request: 0, name, arguments, as_text: false, definition: None, was_exit: None }
    }

    /// Whether it stands in a recorded reply, where tools that were not offered are known to be none.
    pub fn is_from_a_reply(&self) -> bool {
        self.request > 0
    }
}

impl Recording {
    /// Every call of every reply, in order.
    pub fn calls(&self) -> Vec<RecordedToolCall> {
        let numbered = self.requests().iter().enumerate();
        numbered.flat_map(|(index, request)| calls_of(request, index + 1)).collect()
    }
}

/// What was offered with one chat request.
struct Offer {
    definitions: HashMap<String, Arc<Value>>,
    /// What was said before, in which a call written as text may be quoted.
    said: String,
    /// Whether the model was told how to write calls.
    has_convention: bool,
    streams: bool,
    api: Api,
}

fn calls_of(request: &RecordedRequest, number: usize) -> Vec<RecordedToolCall> {
    let kinds = kinds_of(request);
    let mut calls = Vec::new();
    let mut offer = None;
    let mut open: Option<Reading> = None;
    for (line, entry) in &request.lines {
        match entry {
            Line::Request { body, .. } => offer = Some(Offer::of(body, request.session.api)),
            Line::Response { status, .. } => {
                let is_reply = (200..300).contains(status);
                open = offer.take().filter(|offer| is_reply && offer.streams).map(Reading::new);
            }
            Line::Data { text, bytes, .. } => {
                if let Some(reading) = &mut open {
                    let bytes = text.as_deref().map(str::as_bytes).or(bytes.as_deref());
                    reading.feed(bytes.unwrap_or_default(), *line);
                }
            }
            Line::End { error, .. } => {
                if let Some(reading) = open.take() {
                    let end = error.clone().map_or(End::Clean, |error| End::Broken { error });
                    calls.extend(reading.finish(end, *line));
                }
            }
            Line::Session { .. }
            | Line::NoConnection { .. }
            | Line::Tool { .. }
            | Line::ToolStarted { .. }
            | Line::ToolFinished { .. }
            | Line::Approval { .. }
            | Line::Reloaded { .. }
            | Line::Stopped(_)
            | Line::Finished { .. } => {}
        }
    }
    // Stopped in the middle: what was whole by then counts.
    if let (Some(reading), Some((line, _))) = (open, request.lines.last()) {
        let error = String::from("the recording ends here");
        calls.extend(reading.finish(End::Broken { error }, *line));
    }
    for call in &mut calls {
        call.request = number;
        call.was_exit = kinds.get(&call.name).copied();
    }
    calls
}

/// Which tools were run, and which calls were signals.
fn kinds_of(request: &RecordedRequest) -> HashMap<String, bool> {
    let mut kinds = HashMap::new();
    for (_, line) in &request.lines {
        if let Line::ToolStarted { name, .. } = line {
            kinds.insert(name.clone(), false);
        }
    }
    let signals = request.outcome().and_then(|outcome| outcome.get("signals")).and_then(Value::as_array);
    for signal in signals.into_iter().flatten() {
        if let Some(name) = signal.get("tool_name").and_then(Value::as_str) {
            kinds.insert(name.to_owned(), true);
        }
    }
    kinds
}

impl Offer {
    fn of(body: &Value, api: Api) -> Self {
        let tools = body.get("tools").and_then(Value::as_array);
        let definitions = tools.into_iter().flatten().filter_map(|tool| {
            let function = tool.get("function").unwrap_or(tool);
            let name = function.get("name")?.as_str()?.to_owned();
            Some((name, Arc::new(serde_json::json!({"type": "function", "function": function}))))
        });
        let definitions = definitions.collect();
        let mut said = String::new();
        let mut has_convention = false;
        let messages = match api {
            Api::ChatCompletions => body.get("messages"),
            Api::Responses => body.get("input"),
        };
        for message in messages.and_then(Value::as_array).into_iter().flatten() {
            let content = text_of(message);
            match message.get("role").and_then(Value::as_str) {
                Some("system" | "developer") => has_convention |= content.contains("{\"tool\":"),
                Some("assistant") => {}
                _ => said.extend([content.as_str(), "\n"]),
            }
        }
        let instructions = body.get("instructions").and_then(Value::as_str).unwrap_or_default();
        has_convention |= instructions.contains("{\"tool\":");
        let streams = body.get("stream").and_then(Value::as_bool).unwrap_or(false);
        Self { definitions, said, has_convention, streams, api }
    }
}

/// What a message says, or what a call gave: its text, or the texts of its parts.
fn text_of(message: &Value) -> String {
    match message.get("content").or_else(|| message.get("output")) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// A reply that is being read.
struct Reading {
    offer: Offer,
    decoder: StreamDecoder,
    scanner: Scanner,
    events: Vec<ChatEvent>,
    pieces: Vec<Piece>,
    /// The line where the call of each index begins.
    begun: HashMap<usize, usize>,
    /// Each with its number among the candidates, whole or broken, and its line.
    written: Vec<(u32, usize, Candidate)>,
    candidates: u32,
    reply: Option<Reply>,
}

impl Reading {
    fn new(offer: Offer) -> Self {
        Self {
            decoder: StreamDecoder::new(offer.api, offer.definitions.keys().cloned()),
            scanner: Scanner::new(Forms { unmarked: offer.has_convention }),
            offer,
            events: Vec::new(),
            pieces: Vec::new(),
            begun: HashMap::new(),
            written: Vec::new(),
            candidates: 0,
            reply: None,
        }
    }

    fn feed(&mut self, bytes: &[u8], line: usize) {
        self.decoder.feed(bytes, &mut self.events);
        self.take_events(line);
    }

    fn take_events(&mut self, line: usize) {
        for event in std::mem::take(&mut self.events) {
            match event {
                ChatEvent::Text { text } => {
                    text.chars().for_each(|ch| self.scanner.push(ch, &mut self.pieces));
                    self.take_pieces(line);
                }
                ChatEvent::ToolCallDelta { index, .. } => {
                    self.begun.entry(index).or_insert(line);
                }
                ChatEvent::Reasoning { .. } | ChatEvent::Progress { .. } => {}
                ChatEvent::Ended { reply } => self.reply = Some(reply),
            }
        }
    }

    fn take_pieces(&mut self, line: usize) {
        for piece in self.pieces.drain(..) {
            match piece {
                Piece::Candidate(candidate) => {
                    self.written.push((self.candidates, line, candidate));
                    self.candidates += 1;
                }
                Piece::Broken { .. } => self.candidates += 1,
                Piece::Enclosed { from } => {
                    self.written.retain(|(nth, _, _)| *nth < from);
                    self.candidates = from;
                }
                // All before it was thought, not said.
                Piece::ReasoningEnded => self.written.clear(),
                Piece::Text(_) => {}
            }
        }
    }

    fn finish(mut self, end: End, line: usize) -> Vec<RecordedToolCall> {
        let decoder = std::mem::replace(&mut self.decoder, StreamDecoder::new(self.offer.api, Vec::new()));
        decoder.finish(end, &mut self.events);
        self.take_events(line);
        self.scanner.finish(&mut self.pieces);
        self.take_pieces(line);
        let Self { offer, begun, written, reply, .. } = self;
        let make = |line, name: String, arguments, as_text| RecordedToolCall {
            line,
            request: 1,
            definition: offer.definitions.get(&name).cloned(),
            name,
            arguments,
            as_text,
            was_exit: None,
        };
        let structured = reply.map(|reply| reply.calls).unwrap_or_default();
        if !structured.is_empty() {
            let numbered = structured.into_iter().enumerate();
            let line_of = |index: usize| begun.get(&index).copied().unwrap_or(line);
            return numbered
                .map(|(index, call)| make(line_of(index), call.name, call.arguments, false))
                .collect();
        }
        let is_call = |candidate: &Candidate| {
            let is_known = candidate.calls.iter().all(|call| offer.definitions.contains_key(&call.name));
            let is_said = |call: &TextCall| {
                let written = candidate.text.get(call.span.0..call.span.1).unwrap_or(&candidate.text);
                memchr::memmem::find(offer.said.as_bytes(), written.trim().as_bytes()).is_some()
            };
            is_known && !candidate.calls.iter().any(is_said)
        };
        let made = written.into_iter().filter(|(_, _, candidate)| is_call(candidate));
        made.flat_map(|(_, line, candidate)| candidate.calls.into_iter().map(move |call| (line, call)))
            .map(|(line, call)| {
                let definition = offer.definitions.get(&call.name);
                let parameters = definition.and_then(|tool| tool.pointer("/function/parameters"));
                let arguments = settle_written(&call, parameters.unwrap_or(&Value::Null));
                make(line, call.name, arguments, true)
            })
            .collect()
    }
}
