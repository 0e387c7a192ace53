//! What a model says in one reply, and how it becomes an answer.
//!
//! A reply becomes chunks (JSON), the chunks events (bytes), the events an answer (HTTP). At each of these steps the
//! misbehaviours that a reply is told to show have their turn, which is why they can be combined with any reply. Over the
//! Responses API the chunks, bent as they are, are told in its events ([`responses`](super::responses)).

use std::time::Duration;

use serde_json::{Value, json};

use super::answer::{Answer, DONE, event};
use super::completions::{Chunk, chunks, whole};
use super::conversation::api_of;
use super::http::Received;
use super::material::{Material, Piece};
use super::misbehave::{Bend, Misbehaviour};
use super::responses;
use crate::chat::Api;

/// The model's name, where a request tells none.
pub(super) const MODEL: &str = "stub";
/// The longest run of [`Part::Tokens`].
pub(super) const MAX_TOKENS: u32 = 100_000;

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
    /// As it should: finish reason, token counts if asked for, `[DONE]`, end of the body; over the Responses API its last
    /// event.
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
    pub(super) api: Api,
    pub(super) is_stream: bool,
    pub(super) has_usage: bool,
    pub(super) model: String,
}

impl Form {
    pub(super) fn of(request: &Received) -> Self {
        let is_true = |pointer| request.body.pointer(pointer).and_then(Value::as_bool).unwrap_or(false);
        let model = request.body.get("model").and_then(Value::as_str).unwrap_or(MODEL);
        let api = api_of(request.path()).unwrap_or_default();
        Self {
            api,
            is_stream: is_true("/stream"),
            // Responses always count.
            has_usage: api == Api::Responses || is_true("/stream_options/include_usage"),
            // What a client sends is said again in every chunk.
            model: model.chars().take(100).collect(),
        }
    }
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
            form: form.clone(),
            pieces,
            ending: self.ending,
            headers: self.headers.clone(),
            every: self.every,
            call: self.parts.iter().find_map(Part::as_written),
        };
        let bend = self.misbehaviours.iter().find_map(|misbehaviour| match misbehaviour.bend {
            Bend::Answer(bend) => Some(bend),
            Bend::Chunks(_) | Bend::Pieces(_) => None,
        });
        let answer = bend.map_or_else(|| material.plain(), |bend| bend(&material));
        answer.delayed(self.delay)
    }

    /// The events of the body.
    fn events(&self, form: &Form) -> Vec<Piece> {
        let mut chunks = chunks(self, form);
        for misbehaviour in &self.misbehaviours {
            if let Bend::Chunks(bend) = misbehaviour.bend {
                chunks = bend(chunks);
            }
        }
        let mut pieces: Vec<Piece> = match form.api {
            Api::ChatCompletions => {
                let done = (self.ending == Ending::Whole).then(|| Piece::now(DONE));
                let event = |Chunk { wait, json }| Piece { wait, bytes: event(&json).into_bytes() };
                chunks.into_iter().map(event).chain(done).collect()
            }
            Api::Responses => responses::events(chunks, &form.model),
        };
        for misbehaviour in &self.misbehaviours {
            if let Bend::Pieces(bend) = misbehaviour.bend {
                pieces = bend(pieces, form.api);
            }
        }
        pieces
    }

    /// The reply in one piece, as it is without `stream`.
    pub(super) fn whole(&self, form: &Form) -> String {
        let json = match form.api {
            Api::ChatCompletions => whole(self, form),
            Api::Responses => {
                let ended = Self { ending: Ending::Whole, ..self.clone() };
                responses::whole(chunks(&ended, form), &form.model)
            }
        };
        json.to_string()
    }

    pub(super) fn finish_reason(&self) -> &str {
        let has_call = self.parts.iter().any(|part| matches!(part, Part::Call { .. }));
        self.finish.as_deref().unwrap_or(if has_call { "tool_calls" } else { "stop" })
    }

    pub(super) fn usage_json(&self) -> Value {
        let said: u64 = self.parts.iter().map(Part::tokens).sum();
        let (prompt, completion) = self.usage.unwrap_or((10, said.max(1)));
        json!({
            "prompt_tokens": prompt, "completion_tokens": completion,
            "total_tokens": prompt.saturating_add(completion),
        })
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

    /// A call as the model writes it, the way many families do.
    fn as_written(&self) -> Option<String> {
        let Self::Call { name, arguments, .. } = self else { return None };
        Some(format!("<tool_call>{{\"name\": \"{name}\", \"arguments\": {arguments}}}</tool_call>"))
    }
}
