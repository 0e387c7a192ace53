//! The encoding of a reply as an answer.
//!
//! A reply is encoded as chunks (JSON), then as events (bytes), then as an answer (HTTP). The faults of the reply are
//! applied at these stages, so that they can be combined with any reply. For the other APIs the chunks, including their
//! faults, are converted to events ([`responses`], [`messages`]).

use std::time::Duration;

use deftool_chat::Api;
use serde_json::Value;

use super::answer::{Answer, DONE, event, named_event};
use super::completions::{chunks, whole};
use super::fault::Injection;
use super::messages;
use super::model::{AnswerFormat, Chunk, EncodedReply, Ending, MODEL, Piece};
use super::reply::{Part, Reply};
use super::request::Received;
use super::responses;

impl Reply {
    /// Encodes the reply as the answer to a request.
    pub fn answer(&self, request: &Received) -> Answer {
        self.answer_in(&AnswerFormat::of(request))
    }

    pub(super) fn answer_in(&self, format: &AnswerFormat) -> Answer {
        if format.starts_with_thought && !self.has_thought() {
            return self.clone().after_thought().answer_in(format);
        }
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
            Injection::Chunks(_) | Injection::Events(_) | Injection::Pieces(_) => None,
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
            Api::Responses => self.named_events(responses::events(chunks, &format.model)),
            Api::Messages => self.named_events(messages::events(chunks, &format.model)),
        };
        for fault in &self.faults {
            if let Injection::Pieces(inject) = fault.inject {
                pieces = inject(pieces, format.api);
            }
        }
        pieces
    }

    fn named_events(&self, mut events: Vec<Chunk>) -> Vec<Piece> {
        for fault in &self.faults {
            if let Injection::Events(inject) = fault.inject {
                events = inject(events);
            }
        }
        let event = |Chunk { wait, json }| Piece { wait, bytes: named_event(&json).into_bytes() };
        events.into_iter().map(event).collect()
    }

    /// Returns the whole reply, for requests without `stream`.
    pub(super) fn whole(&self, format: &AnswerFormat) -> String {
        let reply = Self { ending: Ending::Whole, ..self.clone() };
        let format = AnswerFormat { has_usage: true, ..format.clone() };
        whole_of(format.api, chunks(&reply, &format), &format.model).to_string()
    }
}

impl Answer {
    /// Returns a complete stream in the format of `api`, converted from these chunks ([`encode_events`]).
    pub fn reply(api: Api, chunks: &[Value]) -> Self {
        let begun = Self::begun(api, chunks);
        let answer = if api == Api::ChatCompletions { begun.done() } else { begun };
        answer.end()
    }

    /// Returns the events of a stream in the format of `api`, converted from these chunks ([`encode_events`]), without the
    /// end of the body.
    pub fn begun(api: Api, chunks: &[Value]) -> Self {
        let format = if api == Api::ChatCompletions { event } else { named_event };
        encode_events(api, chunks).iter().fold(Self::stream(), |answer, json| answer.piece(format(json)))
    }
}

/// Converts the chunks of a chat completions stream to the events of `api`, as a gateway in front of such a server does.
/// Without a finish reason the events have no end, like a stream that was cut off.
///
/// ```
/// use deftool_chat::Api;
/// use deftool_stub::{delta, encode_events, finish};
///
/// let events = encode_events(Api::Messages, &[delta("Hello"), finish("stop")]);
/// let last = events.last().ok_or("no events")?;
/// assert_eq!(last["type"], "message_stop");
/// # Ok::<(), &str>(())
/// ```
pub fn encode_events(api: Api, chunks: &[Value]) -> Vec<Value> {
    let model = model_of(chunks);
    let events = match api {
        Api::ChatCompletions => return chunks.to_vec(),
        Api::Responses => responses::events(timed(chunks), model),
        Api::Messages => messages::events(timed(chunks), model),
    };
    events.into_iter().map(|event| event.json).collect()
}

/// Converts the chunks of a chat completions stream to the whole reply of `api`, for requests without `stream`.
pub fn encode_whole(api: Api, chunks: &[Value]) -> Value {
    whole_of(api, timed(chunks), model_of(chunks))
}

fn whole_of(api: Api, chunks: Vec<Chunk>, model: &str) -> Value {
    match api {
        Api::ChatCompletions => whole(&chunks, model),
        Api::Responses => responses::whole(chunks, model),
        Api::Messages => messages::whole(chunks, model),
    }
}

fn model_of(chunks: &[Value]) -> &str {
    chunks.iter().find_map(|chunk| chunk.get("model")?.as_str()).unwrap_or(MODEL)
}

fn timed(chunks: &[Value]) -> Vec<Chunk> {
    chunks.iter().map(|json| Chunk { wait: Duration::ZERO, json: json.clone() }).collect()
}
