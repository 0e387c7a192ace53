//! The type of a fault, and constructors for the tables of faults ([`faults`](super::faults)).

use deftool_chat::Api;
use serde::Serialize;

use super::answer::Answer;
use super::model::{Chunk, EmulatedServer, EncodedReply, Piece};

/// A server fault.
#[derive(Debug, Serialize)]
pub struct Fault {
    /// The name, in kebab-case.
    pub name: &'static str,
    /// A description of the fault, in one clause.
    pub about: &'static str,
    /// The servers that have this fault, or its cause.
    pub seen: &'static str,
    /// The APIs in which the fault exists.
    pub apis: &'static [Api],
    /// The content that a reply must have for the fault to have an effect.
    #[serde(skip)]
    pub(super) needs: Needs,
    #[serde(skip)]
    pub(super) inject: Injection,
    /// The server that the stub must emulate, for faults that a client recognises only on a known server.
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
    /// The chunks of chat completions, as JSON. The events of other APIs are made of them.
    Chunks(fn(Vec<Chunk>) -> Vec<Chunk>),
    /// The events of the Responses or Messages API, as JSON.
    Events(fn(Vec<Chunk>) -> Vec<Chunk>),
    /// The bytes of the body.
    Pieces(fn(Vec<Piece>, Api) -> Vec<Piece>),
    /// The whole answer, including its head.
    Answer(fn(&EncodedReply) -> Answer),
}

impl Fault {
    /// Whether a client recognises the fault only on a known server. The stub then emulates that server
    /// ([`Scenario::with_faults`](super::Scenario::with_faults)).
    pub fn emulates_server(&self) -> bool {
        self.server != EmulatedServer::Other
    }

    /// Whether the fault exists in `api`.
    pub fn applies_to(&self, api: Api) -> bool {
        self.apis.contains(&api)
    }

    /// Returns the names of the APIs, such as `chat completions and messages`, if the fault does not exist in all.
    pub fn restriction(&self) -> Option<String> {
        let names = self.apis.iter().map(|api| match api {
            Api::ChatCompletions => "chat completions",
            Api::Responses => "responses",
            Api::Messages => "messages",
        });
        (self.apis.len() < ALL.len()).then(|| names.collect::<Vec<_>>().join(" and "))
    }

    /// Restricts the fault to these APIs.
    pub(super) const fn only(self, apis: &'static [Api]) -> Self {
        Self { apis, ..self }
    }

    /// Restricts the fault to chat completions.
    pub(super) const fn chat_only(self) -> Self {
        self.only(&[Api::ChatCompletions])
    }

    /// Restricts the fault to the APIs of `OpenAI`.
    pub(super) const fn openai_only(self) -> Self {
        self.only(&[Api::ChatCompletions, Api::Responses])
    }

    /// Makes the stub emulate `server`.
    pub(super) const fn on_server(self, server: EmulatedServer) -> Self {
        Self { server, ..self }
    }

    /// Whether the fault replaces the whole answer. Two such faults cannot be combined.
    pub(super) fn replaces_answer(&self) -> bool {
        match self.inject {
            Injection::Answer(_) => true,
            Injection::Chunks(_) | Injection::Events(_) | Injection::Pieces(_) => false,
        }
    }
}

/// All APIs.
pub(super) const ALL: &[Api] = &[Api::ChatCompletions, Api::Responses, Api::Messages];

/// Returns a fault that applies to all APIs and needs no emulated server.
pub(super) const fn new(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    needs: Needs,
    inject: Injection,
) -> Fault {
    Fault { name, about, seen, apis: ALL, needs, inject, server: EmulatedServer::Other }
}

/// Returns a fault that changes the chunks of a reply.
pub(super) const fn chunks(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    needs: Needs,
    inject: fn(Vec<Chunk>) -> Vec<Chunk>,
) -> Fault {
    new(name, about, seen, needs, Injection::Chunks(inject))
}

/// Returns a fault that changes the body of a text reply.
pub(super) const fn pieces(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    inject: fn(Vec<Piece>, Api) -> Vec<Piece>,
) -> Fault {
    new(name, about, seen, Needs::Text, Injection::Pieces(inject))
}

/// Returns a fault that replaces the answer of a text reply.
pub(super) const fn answer(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    inject: fn(&EncodedReply) -> Answer,
) -> Fault {
    new(name, about, seen, Needs::Text, Injection::Answer(inject))
}

/// Like [`answer`], for a reply that contains a call.
pub(super) const fn answer_to_call(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    inject: fn(&EncodedReply) -> Answer,
) -> Fault {
    new(name, about, seen, Needs::Call, Injection::Answer(inject))
}
