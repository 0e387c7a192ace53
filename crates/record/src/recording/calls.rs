//! The tool calls of a recording, as the model made them: parsed from the replies. They include failed calls, exit
//! calls and calls written as text.
//!
//! Nothing is executed or validated here.

use std::collections::HashMap;
use std::sync::Arc;

use deftool_chat::fallback::Forms;
use deftool_chat::request::{Event, TextReader, coerce_arguments};
use deftool_chat::{
    Api, ChatEvent, Dialect, Message, RawArguments, RawCall, Reply, StreamDecoder, TransportEnd,
};
use deftool_lang::schema::{ToolEntry, ToolKind, ToolSet};
use serde_json::Value;

use super::format::{Line, Session, api_of, conversation_member};
use super::read::{RecordedRequest, Recording};

/// A tool call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedToolCall {
    /// The line of the recording where the call begins, from 1; for a call written as text, the line that completes it.
    pub line: usize,
    /// Number of the request in the recording, from 1; 0 for a dump.
    pub request: usize,
    /// The turn of the request, from 1; 0 for a dump.
    pub turn: u32,
    /// The tool name, as written by the model.
    pub name: String,
    /// The arguments.
    pub arguments: RawArguments,
    /// Whether the call was written as text.
    pub as_text: bool,
    /// The definition of the tool in the request; `None`: unknown tool.
    pub definition: Option<Arc<Value>>,
    /// Whether it was an exit call, if the recording contains that.
    pub was_exit: Option<bool>,
}

impl RecordedToolCall {
    /// Creates a call from a source other than a recording. The arguments may be JSON text.
    pub fn dumped(line: usize, name: &str, arguments: Value) -> Self {
        let malformed = |text: String, error: &str| RawArguments::Malformed {
            text,
            error: error.to_owned(),
            truncated: false,
        };
        let arguments = match arguments {
            Value::Object(value) => RawArguments::Object { value: value.into() },
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(value) => RawArguments::Object { value },
                Err(error) => malformed(text, &error.to_string()),
            },
            other => malformed(other.to_string(), "not a JSON object"),
        };
        let name = name.to_owned();
        Self { line, request: 0, turn: 0, name, arguments, as_text: false, definition: None, was_exit: None }
    }

    /// Whether the call is from a recorded reply, where the offered tools are known.
    pub fn is_from_a_reply(&self) -> bool {
        self.request > 0
    }
}

impl Recording {
    /// Returns the calls of all replies, in order.
    pub fn calls(&self) -> Vec<RecordedToolCall> {
        let numbered = self.requests().iter().enumerate();
        numbered.flat_map(|(index, request)| calls_of(request, index + 1)).collect()
    }
}

/// The tools and the conversation of one chat request.
struct Offer {
    turn: u32,
    definitions: HashMap<String, Arc<Value>>,
    /// The text of the previous messages. A call written as text may be a quotation of it.
    previous_text: String,
    /// The forms of calls written as text that are read. All unmarked forms, if the system message describes how to write
    /// calls as text.
    forms: Forms,
    streams: bool,
    api: Api,
    dialect: Dialect,
}

fn calls_of(request: &RecordedRequest, number: usize) -> Vec<RecordedToolCall> {
    let kinds = kinds_of(request);
    let mut calls = Vec::new();
    let mut offer = None;
    let mut open: Option<Reading> = None;
    for (line, entry) in &request.lines {
        match entry {
            Line::Request { turn, body, .. } => offer = Some(Offer::of(&request.session, *turn, body)),
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
                    let end =
                        error.clone().map_or(TransportEnd::Clean, |error| TransportEnd::Broken { error });
                    calls.extend(reading.finish(end, *line));
                }
            }
            Line::Session { .. }
            | Line::NoConnection { .. }
            | Line::Event { .. }
            | Line::Log { .. }
            | Line::Attachment(_)
            | Line::Stopped(_) => {}
        }
    }
    // If the recording ends within a reply, the complete calls of that reply count.
    if let (Some(reading), Some((line, _))) = (open, request.lines.last()) {
        let error = String::from("the recording ends here");
        calls.extend(reading.finish(TransportEnd::Broken { error }, *line));
    }
    for call in &mut calls {
        call.request = number;
        call.was_exit = kinds.get(&call.name).copied();
    }
    calls
}

/// Returns for each called tool whether it is an exit tool.
fn kinds_of(request: &RecordedRequest) -> HashMap<String, bool> {
    let kinds = request.events.iter().filter_map(|recorded| match &recorded.event {
        Event::ToolStarted { name, .. } => Some((name.clone(), false)),
        Event::Signal(signal) => Some((signal.tool_name.clone(), true)),
        _ => None,
    });
    kinds.collect()
}

impl Offer {
    fn of(session: &Session, turn: u32, body: &Value) -> Self {
        let api = api_of(session.api, body);
        let tools = body.get("tools").and_then(Value::as_array);
        let definitions = tools.into_iter().flatten().filter_map(|tool| {
            let mut function = tool.get("function").unwrap_or(tool).clone();
            let name = function.get("name")?.as_str()?.to_owned();
            if let Some(members) = function.as_object_mut()
                && let Some(schema) = members.remove("input_schema")
            {
                members.insert(String::from("parameters"), schema);
            }
            Some((name, Arc::new(serde_json::json!({"type": "function", "function": function}))))
        });
        let definitions = definitions.collect();
        let mut previous_text = String::new();
        let mut has_convention = false;
        for message in body.get(conversation_member(api)).and_then(Value::as_array).into_iter().flatten() {
            let content = text_of(message);
            match message.get("role").and_then(Value::as_str) {
                Some("system" | "developer") => has_convention |= content.contains("{\"tool\":"),
                Some("assistant") => {}
                _ => previous_text.extend([content.as_str(), "\n"]),
            }
        }
        let outside = ["instructions", "system"].into_iter().filter_map(|name| body.get(name));
        has_convention |= outside.map(text_in).any(|text| text.contains("{\"tool\":"));
        let streams = body.get("stream").and_then(Value::as_bool).unwrap_or(false);
        let forms = session.server.dialect.forms(&session.model, session.server.text_forms);
        let forms = if has_convention { forms.with_unmarked() } else { forms };
        let dialect = session.server.dialect;
        Self { turn, definitions, previous_text, forms, streams, api, dialect }
    }
}

/// Returns the text of a message or of a call's result: its content, or the texts of its parts.
pub(crate) fn text_of(message: &Value) -> String {
    message.get("content").or_else(|| message.get("output")).map(text_in).unwrap_or_default()
}

/// Returns a text, or the texts of parts. Results are parts in the Messages API.
pub(crate) fn text_in(content: &Value) -> String {
    let text_of_part = |part: &Value| match part.get("text").or_else(|| part.get("content"))? {
        Value::String(text) => Some(text.clone()),
        parts @ Value::Array(_) => Some(text_in(parts)),
        _ => None,
    };
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(text_of_part).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// A reply that is being read.
struct Reading {
    offer: Offer,
    decoder: StreamDecoder,
    text: TextReader,
    events: Vec<ChatEvent>,
    /// The line where the call of each index begins.
    start_lines: HashMap<usize, usize>,
    reply: Option<Reply>,
}

impl Reading {
    fn new(offer: Offer) -> Self {
        let entry = |definition: &Arc<Value>| {
            Arc::new(ToolEntry::lenient(ToolKind::Normal, Value::clone(definition), None).0)
        };
        let tools = ToolSet::new(offer.definitions.values().map(entry));
        let previous = Arc::new(Message::user(offer.previous_text.clone()));
        Self {
            decoder: StreamDecoder::new(offer.api, offer.definitions.keys().cloned()),
            text: TextReader::new(offer.forms, tools, vec![previous]),
            offer,
            events: Vec::new(),
            start_lines: HashMap::new(),
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
                ChatEvent::Text { text } => self.text.push(&text, u64::try_from(line).unwrap_or(u64::MAX)),
                ChatEvent::ToolCallDelta { index, .. } => {
                    self.start_lines.entry(index).or_insert(line);
                }
                ChatEvent::Reasoning { .. } | ChatEvent::Progress { .. } => {}
                ChatEvent::Ended { reply } => self.reply = Some(reply),
            }
        }
    }

    fn finish(mut self, end: TransportEnd, line: usize) -> Vec<RecordedToolCall> {
        let decoder = std::mem::replace(&mut self.decoder, StreamDecoder::new(self.offer.api, Vec::new()));
        decoder.finish(end, &mut self.events);
        self.take_events(line);
        let is_finished = self.reply.as_ref().is_some_and(|reply| reply.is_finished(self.offer.dialect));
        let Self { offer, start_lines, text, reply, .. } = self;
        let make = |line, name: String, arguments, as_text| RecordedToolCall {
            line,
            request: 1,
            turn: offer.turn,
            definition: offer.definitions.get(&name).cloned(),
            name,
            arguments,
            as_text,
            was_exit: None,
        };
        let structured = reply.map(|reply| reply.calls).unwrap_or_default();
        if !structured.is_empty() {
            let line_of = |call: &RawCall| start_lines.get(&call.index).copied().unwrap_or(line);
            return structured
                .into_iter()
                .map(|call| make(line_of(&call), call.name, call.arguments, false))
                .collect();
        }
        let written = text.finish(is_finished).into_iter();
        written
            .filter(|(_, call)| offer.definitions.contains_key(&call.name))
            .map(|(line, call)| {
                let line = usize::try_from(line).unwrap_or(usize::MAX);
                let definition = offer.definitions.get(&call.name);
                let parameters = definition.and_then(|tool| tool.pointer("/function/parameters"));
                let arguments = coerce_arguments(&call, parameters.unwrap_or(&Value::Null));
                make(line, call.name, arguments, true)
            })
            .collect()
    }
}
