//! Faults that real servers are known to have, by name.
//!
//! A fault changes a reply at one of three stages: its chunks, the pieces of its body, or the whole answer. The tables
//! are also the documentation: `deftool stub --list` prints them, and `docs/stub.md` is generated from them. The
//! expected outcome of each fault is listed in `tests/stub/outcomes.txt`, and the worker is tested against it.

mod answers;
mod calls;
mod edit;
mod events;
mod raw_events;
mod replies;
mod streams;

use deftool_chat::Api;
use serde::Serialize;

use super::answer::Answer;
use super::completions::Chunk;
use super::encoded::{EncodedReply, Piece};
use super::server::EmulatedServer;

/// A server fault.
#[derive(Debug, Serialize)]
pub struct Fault {
    /// The name, in kebab-case.
    pub name: &'static str,
    /// A description of the fault, in one clause.
    pub about: &'static str,
    /// The servers that have this fault, or its cause.
    pub seen: &'static str,
    /// Whether the fault exists in chat completions only, not in the Responses API.
    pub chat_completions_only: bool,
    /// What a reply must contain for the fault to have an effect.
    #[serde(skip)]
    pub(super) needs: Needs,
    #[serde(skip)]
    pub(super) inject: Injection,
    /// The server that the stub must emulate, for faults that a client recognizes only on a known server.
    #[serde(skip)]
    pub(super) server: EmulatedServer,
}

/// The content of a generated reply that a fault is applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Text.
    Text,
    /// Text and a call with arguments.
    Call,
    /// Text and two calls of one tool.
    TwoCalls,
    /// Text and a call of a tool that needs no arguments.
    EmptyCall,
}

/// The stage at which a fault changes a reply, and the function that does it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Injection {
    /// The chunks, as JSON.
    Chunks(fn(Vec<Chunk>) -> Vec<Chunk>),
    /// The bytes of the body.
    Pieces(fn(Vec<Piece>, Api) -> Vec<Piece>),
    /// The whole answer, including its head.
    Answer(fn(&EncodedReply) -> Answer),
}

/// A group of related faults.
#[derive(Debug, Serialize)]
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// The faults.
    pub members: &'static [Fault],
}

/// All faults, grouped.
pub static GROUPS: [Group; 5] = [
    Group { title: "Tool calls", members: calls::TABLE },
    Group { title: "Finish, role, content, token counts", members: replies::TABLE },
    Group { title: "Event streams", members: events::TABLE },
    Group { title: "HTTP", members: answers::TABLE },
    Group { title: "Connections, time and size", members: streams::TABLE },
];

impl Fault {
    /// Returns all faults in the order of [`GROUPS`].
    pub fn all() -> impl Iterator<Item = &'static Self> {
        GROUPS.iter().flat_map(|group| group.members)
    }

    /// Returns the fault called `name`.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|fault| fault.name == name)
    }

    /// Whether a client recognizes the fault only on a known server. The stub then emulates that server
    /// ([`Scenario::with_faults`](super::Scenario::with_faults)).
    pub fn emulates_server(&self) -> bool {
        self.server != EmulatedServer::Other
    }

    /// Whether the fault exists in `api`.
    pub fn applies_to(&self, api: Api) -> bool {
        match api {
            Api::ChatCompletions => true,
            Api::Responses => !self.chat_completions_only,
        }
    }

    /// Restricts the fault to chat completions.
    const fn chat_only(self) -> Self {
        Self { chat_completions_only: true, ..self }
    }

    /// Makes the stub emulate `server`.
    const fn on_server(self, server: EmulatedServer) -> Self {
        Self { server, ..self }
    }

    /// Whether the fault replaces the whole answer. Two such faults cannot be combined.
    pub(super) fn replaces_answer(&self) -> bool {
        match self.inject {
            Injection::Answer(_) => true,
            Injection::Chunks(_) | Injection::Pieces(_) => false,
        }
    }
}

const fn new(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    needs: Needs,
    inject: Injection,
) -> Fault {
    let (chat_completions_only, server) = (false, EmulatedServer::Other);
    Fault { name, about, seen, chat_completions_only, needs, inject, server }
}

const fn chunks(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    needs: Needs,
    inject: fn(Vec<Chunk>) -> Vec<Chunk>,
) -> Fault {
    new(name, about, seen, needs, Injection::Chunks(inject))
}

const fn pieces(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    inject: fn(Vec<Piece>, Api) -> Vec<Piece>,
) -> Fault {
    new(name, about, seen, Needs::Text, Injection::Pieces(inject))
}

const fn answer(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    inject: fn(&EncodedReply) -> Answer,
) -> Fault {
    new(name, about, seen, Needs::Text, Injection::Answer(inject))
}

/// Like [`answer`], for a reply that contains a call.
const fn answer_to_call(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    inject: fn(&EncodedReply) -> Answer,
) -> Fault {
    new(name, about, seen, Needs::Call, Injection::Answer(inject))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::{AnswerFormat, Reply};
    use serde_json::json;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_kebab_case() {
        let names: Vec<&str> = Fault::all().map(|fault| fault.name).collect();
        let unique: HashSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), unique.len(), "{names:?}");
        assert!(names.len() >= 90, "{}", names.len());
        for Fault { name, about, seen, .. } in Fault::all() {
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{name}"
            );
            assert!(!about.is_empty() && !about.ends_with('.') && !seen.is_empty(), "{name}");
            assert_eq!(Fault::named(name).map(|found| found.name), Some(*name));
        }
    }

    /// A fault without an effect would test nothing.
    #[test]
    fn every_fault_changes_the_answer() {
        let call = json!({"at": "a place of more than a dozen letters"});
        let reply = Reply::new().text("Let me look. ").call("look", &call).call("look", &call);
        for api in [Api::ChatCompletions, Api::Responses] {
            let format = AnswerFormat { api, is_stream: true, has_usage: true, model: String::from("m") };
            let bytes = |reply: &Reply| {
                reply.answer_in(&format).acts().iter().map(|act| format!("{act:?}")).collect::<Vec<_>>()
            };
            let plain = bytes(&reply);
            for fault in Fault::all().filter(|fault| fault.applies_to(api)) {
                let faulty = bytes(&reply.clone().with_fault(fault));
                // `stream-for-json` changes nothing if a stream was requested.
                assert_eq!(plain == faulty, fault.name == "stream-for-json", "{} of {api:?}", fault.name);
            }
        }
    }
}
