//! The types that the stages of an answer share: the format, the chunks (JSON), the pieces of a body (bytes) and the
//! encoded reply.

use std::time::Duration;

use deftool_chat::Api;
use serde_json::Value;

use super::answer::{Act, Answer, END, framed};
use super::request::{Received, api_of, enables_thinking};

/// The model's name, if the request has none.
pub(super) const MODEL: &str = "stub";
/// The context size that the stub reports, in tokens.
pub(super) const CONTEXT: u64 = 4096;

/// The server that the stub emulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum EmulatedServer {
    /// No known server.
    #[default]
    Other,
    LlamaCpp,
    Ollama,
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// Complete: finish reason, token counts if requested, `[DONE]`, end of the body. In other APIs, the final event and
    /// the end of the body.
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

/// The requested format of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AnswerFormat {
    pub(super) api: Api,
    pub(super) is_stream: bool,
    pub(super) has_usage: bool,
    pub(super) model: String,
    /// Whether the request enables thinking over the Messages API, where a reply then starts with a thought.
    pub(super) starts_with_thought: bool,
}

impl AnswerFormat {
    pub(super) fn of(request: &Received) -> Self {
        let is_true = |pointer| request.body.pointer(pointer).and_then(Value::as_bool).unwrap_or(false);
        let model = request.body.get("model").and_then(Value::as_str).unwrap_or(MODEL);
        let api = api_of(request.path()).unwrap_or_default();
        Self {
            api,
            is_stream: is_true("/stream"),
            // The other APIs always send token counts.
            has_usage: api != Api::ChatCompletions || is_true("/stream_options/include_usage"),
            // Every chunk repeats the name.
            model: model.chars().take(100).collect(),
            starts_with_thought: api == Api::Messages && enables_thinking(&request.body),
        }
    }

    /// Returns the format of a stream with token counts.
    #[cfg(test)]
    pub(super) fn stream(api: Api) -> Self {
        let (is_stream, has_usage, starts_with_thought) = (true, true, false);
        Self { api, is_stream, has_usage, model: String::from("m"), starts_with_thought }
    }
}

/// A chunk of a stream and the wait before it.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) wait: Duration,
    pub(super) json: Value,
}

/// A piece of a body and the wait before it.
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

/// An encoded reply.
#[derive(Debug)]
pub(super) struct EncodedReply {
    pub(super) format: AnswerFormat,
    pub(super) pieces: Vec<Piece>,
    pub(super) ending: Ending,
    pub(super) headers: Vec<(String, String)>,
    /// The requested wait between pieces.
    pub(super) every: Option<Duration>,
    /// The first call as text, as the model writes it.
    pub(super) call: Option<String>,
}

impl EncodedReply {
    /// Returns the head of a stream or of a JSON answer.
    pub(super) fn head(&self) -> Answer {
        let kind = if self.format.is_stream { "text/event-stream" } else { "application/json" };
        self.head_of(200, kind)
    }

    /// Returns a head with this status and content type.
    pub(super) fn head_of(&self, status: u16, content_type: &str) -> Answer {
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers: Vec<(&str, &str)> = std::iter::once(("content-type", content_type)).chain(own).collect();
        Answer::head(status, &headers)
    }

    /// Returns the answer without a fault.
    pub(super) fn plain(&self) -> Answer {
        self.end(self.body(self.head()))
    }

    /// Appends all pieces to `answer`.
    pub(super) fn body(&self, answer: Answer) -> Answer {
        add(answer, &self.pieces)
    }

    /// Appends the first half of the pieces to `answer`.
    pub(super) fn half(&self, answer: Answer) -> Answer {
        add(answer, self.pieces.get(..self.pieces.len() / 2).unwrap_or_default())
    }

    /// Appends the pieces up to the middle of the arguments of calls. Without a call, appends the first half of the
    /// pieces.
    pub(super) fn half_call(&self, answer: Answer) -> Answer {
        let is_delta = |piece: &&Piece| match self.format.api {
            Api::ChatCompletions => {
                has(&piece.bytes, b"\"arguments\":\"") && !has(&piece.bytes, b"\"name\":")
            }
            Api::Responses => has(&piece.bytes, b"function_call_arguments.delta"),
            Api::Messages => has(&piece.bytes, b"input_json_delta"),
        };
        let count = self.pieces.iter().filter(is_delta).count();
        let middle = self.pieces.iter().enumerate().filter(|(_, piece)| is_delta(piece)).nth(count / 2);
        match middle {
            Some((at, _)) => add(answer, self.pieces.get(..at).unwrap_or_default()),
            None => self.half(answer),
        }
    }

    /// Returns the whole body.
    pub(super) fn joined(&self) -> Vec<u8> {
        self.pieces.iter().flat_map(|piece| piece.bytes.iter().copied()).collect()
    }

    /// Returns the interval for slow and endless answers. The default is `ms`.
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

fn has(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}
