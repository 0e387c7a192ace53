//! The encoding of a reply as an answer.
//!
//! A reply is encoded as chunks (JSON), then as events (bytes), then as an answer (HTTP). The faults of the reply are
//! applied at these stages, so that they can be combined with any reply. For the other APIs the chunks, including their
//! faults, are converted to events ([`responses`], [`messages`]).

use deftool_chat::Api;

use super::answer::{Answer, DONE, event, named_event};
use super::completions::{chunks, whole};
use super::fault::Injection;
use super::messages;
use super::model::{AnswerFormat, Chunk, EncodedReply, Ending, Piece};
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
        let whole_chunks = || chunks(&Self { ending: Ending::Whole, ..self.clone() }, format);
        let json = match format.api {
            Api::ChatCompletions => whole(self, format),
            Api::Responses => responses::whole(whole_chunks(), &format.model),
            Api::Messages => messages::whole(whole_chunks(), &format.model),
        };
        json.to_string()
    }
}
