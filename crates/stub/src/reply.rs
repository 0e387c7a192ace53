//! A scripted reply of the model, and its encoding as an answer.
//!
//! A reply is encoded as chunks (JSON), then as events (bytes), then as an answer (HTTP). The faults of the reply are
//! applied at these stages, so that they can be combined with any reply. For the Responses API the chunks, including
//! their faults, are converted to its events ([`responses`](super::responses)).

use std::time::Duration;

use deftool_chat::Api;
use serde_json::{Value, json};

use super::answer::{Answer, DONE, event};
use super::completions::{Chunk, chunks, whole};
use super::conversation::api_of;
use super::encoded::{EncodedReply, Piece};
use super::faults::{Fault, Injection};
use super::http::Received;
use super::responses;

/// The model's name, if the request has none.
pub(super) const MODEL: &str = "stub";
/// The maximum count of [`Part::Tokens`].
pub(super) const MAX_TOKENS: u32 = 100_000;

/// A scripted reply.
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
    pub(super) faults: Vec<&'static Fault>,
}

/// A part of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Text(String),
    Reasoning(String),
    /// A call. The arguments are written as they are, valid JSON or not.
    Call {
        name: String,
        arguments: String,
        id: Option<String>,
    },
    /// This number of short words, one per delta.
    Tokens(u32),
    /// A pause.
    Wait(Duration),
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// Complete: finish reason, token counts if requested, `[DONE]`, end of the body. In the Responses API, the final
    /// event and the end of the body.
    #[default]
    Whole,
    /// The body ends without a finish reason, `[DONE]` or final event.
    End,
    /// The connection is closed in the middle of the body.
    Close,
    /// The connection is reset.
    Reset,
    /// Nothing more is sent, and the connection stays open.
    Silence,
}

/// The format of an answer, as the request asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AnswerFormat {
    pub(super) api: Api,
    pub(super) is_stream: bool,
    pub(super) has_usage: bool,
    pub(super) model: String,
}

impl AnswerFormat {
    pub(super) fn of(request: &Received) -> Self {
        let is_true = |pointer| request.body.pointer(pointer).and_then(Value::as_bool).unwrap_or(false);
        let model = request.body.get("model").and_then(Value::as_str).unwrap_or(MODEL);
        let api = api_of(request.path()).unwrap_or_default();
        Self {
            api,
            is_stream: is_true("/stream"),
            // The Responses API always sends token counts.
            has_usage: api == Api::Responses || is_true("/stream_options/include_usage"),
            // Every chunk repeats the name.
            model: model.chars().take(100).collect(),
        }
    }
}

impl Reply {
    /// Returns an empty reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.part(Part::Text(text.into()))
    }

    /// Appends reasoning.
    #[must_use]
    pub fn reasoning(self, text: impl Into<String>) -> Self {
        self.part(Part::Reasoning(text.into()))
    }

    /// Appends a call of the tool `name`.
    #[must_use]
    pub fn call(self, name: impl Into<String>, arguments: &Value) -> Self {
        self.part(Part::Call { name: name.into(), arguments: arguments.to_string(), id: None })
    }

    /// Appends a pause.
    #[must_use]
    pub fn wait(self, time: Duration) -> Self {
        self.part(Part::Wait(time))
    }

    /// Sets the wait before each delta.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = Some(every);
        self
    }

    /// Sets the ending.
    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// Adds a fault.
    #[must_use]
    pub fn with_fault(mut self, fault: &'static Fault) -> Self {
        self.faults.push(fault);
        self
    }

    fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Encodes the reply as the answer to a request.
    pub fn answer(&self, request: &Received) -> Answer {
        self.answer_in(&AnswerFormat::of(request))
    }

    pub(super) fn answer_in(&self, format: &AnswerFormat) -> Answer {
        let pieces =
            if format.is_stream { self.events(format) } else { vec![Piece::now(self.whole(format))] };
        let encoded = EncodedReply {
            format: format.clone(),
            pieces,
            ending: self.ending,
            headers: self.headers.clone(),
            every: self.every,
            call: self.parts.iter().find_map(Part::as_written),
        };
        let inject = self.faults.iter().find_map(|fault| match fault.inject {
            Injection::Answer(inject) => Some(inject),
            Injection::Chunks(_) | Injection::Pieces(_) => None,
        });
        let answer = inject.map_or_else(|| encoded.plain(), |inject| inject(&encoded));
        answer.delayed(self.delay)
    }

    /// Returns the events of the body.
    fn events(&self, format: &AnswerFormat) -> Vec<Piece> {
        let mut chunks = chunks(self, format);
        for fault in &self.faults {
            if let Injection::Chunks(inject) = fault.inject {
                chunks = inject(chunks);
            }
        }
        let mut pieces: Vec<Piece> = match format.api {
            Api::ChatCompletions => {
                let done = (self.ending == Ending::Whole).then(|| Piece::now(DONE));
                let event = |Chunk { wait, json }| Piece { wait, bytes: event(&json).into_bytes() };
                chunks.into_iter().map(event).chain(done).collect()
            }
            Api::Responses => responses::events(chunks, &format.model),
        };
        for fault in &self.faults {
            if let Injection::Pieces(inject) = fault.inject {
                pieces = inject(pieces, format.api);
            }
        }
        pieces
    }

    /// Returns the whole reply, for requests without `stream`.
    pub(super) fn whole(&self, format: &AnswerFormat) -> String {
        let json = match format.api {
            Api::ChatCompletions => whole(self, format),
            Api::Responses => {
                let ended = Self { ending: Ending::Whole, ..self.clone() };
                responses::whole(chunks(&ended, format), &format.model)
            }
        };
        json.to_string()
    }

    pub(super) fn finish_reason(&self) -> &str {
        let has_call = self.parts.iter().any(|part| matches!(part, Part::Call { .. }));
        self.finish.as_deref().unwrap_or(if has_call { "tool_calls" } else { "stop" })
    }

    pub(super) fn usage_json(&self) -> Value {
        let tokens: u64 = self.parts.iter().map(Part::tokens).sum();
        let (prompt, completion) = self.usage.unwrap_or((10, tokens.max(1)));
        json!({
            "prompt_tokens": prompt, "completion_tokens": completion,
            "total_tokens": prompt.saturating_add(completion),
        })
    }
}

impl Part {
    /// Estimates the number of tokens.
    fn tokens(&self) -> u64 {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text.split_whitespace().count() as u64,
            Self::Call { arguments, .. } => 4 + arguments.len() as u64 / 4,
            Self::Tokens(count) => u64::from(*count),
            Self::Wait(_) => 0,
        }
    }

    /// Returns a call as text, in the format of many model families.
    fn as_written(&self) -> Option<String> {
        let Self::Call { name, arguments, .. } = self else { return None };
        Some(format!("<tool_call>{{\"name\": \"{name}\", \"arguments\": {arguments}}}</tool_call>"))
    }
}
