//! Everything that servers are known to do wrong, by name.
//!
//! A misbehaviour bends a reply at one of three places: its chunks, the pieces of its body, or the whole answer. The
//! tables are the documentation: `deftool stub --list` prints them, and `docs/stub.md` is made from them. What a right
//! client makes of each stands in `tests/stub/outcomes.txt`, and the worker is held to it.

mod answers;
mod bend;
mod calls;
mod events;
mod replies;
mod speech;
mod streams;

use serde::Serialize;

use super::answer::Answer;
use super::completions::Chunk;
use super::material::{Material, Piece};
use super::server::Server;
use crate::chat::Api;

/// One way to be wrong.
#[derive(Debug, Serialize)]
pub struct Misbehaviour {
    /// Its name, kebab-case.
    pub name: &'static str,
    /// What is wrong, in one clause.
    pub about: &'static str,
    /// Which servers do it, or what brings it about.
    pub seen: &'static str,
    /// Whether only a stream of chat completions can be wrong in this way, and no response.
    pub chat_completions_only: bool,
    /// What a reply must hold, so that it can be wrong in this way.
    #[serde(skip)]
    pub(super) needs: Needs,
    #[serde(skip)]
    pub(super) bend: Bend,
    /// Whose manners it belongs to, where a client asks before it believes it.
    #[serde(skip)]
    pub(super) server: Server,
}

/// What the reply holds that is bent, where nobody says what it is to be.
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

/// Where a reply is bent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bend {
    /// Its chunks, while they are JSON.
    Chunks(fn(Vec<Chunk>) -> Vec<Chunk>),
    /// The bytes of its body.
    Pieces(fn(Vec<Piece>, Api) -> Vec<Piece>),
    /// The answer with its head.
    Answer(fn(&Material) -> Answer),
}

/// Misbehaviours of one sort.
#[derive(Debug, Serialize)]
pub struct Group {
    /// What they have in common.
    pub title: &'static str,
    /// The misbehaviours.
    pub members: &'static [Misbehaviour],
}

/// All of them.
pub static GROUPS: [Group; 5] = [
    Group { title: "Tool calls", members: calls::TABLE },
    Group { title: "Finish, role, content, token counts", members: replies::TABLE },
    Group { title: "Event streams", members: events::TABLE },
    Group { title: "HTTP", members: answers::TABLE },
    Group { title: "Connections, time and size", members: streams::TABLE },
];

impl Misbehaviour {
    /// Every misbehaviour, group after group.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        GROUPS.iter().flat_map(|group| group.members)
    }

    /// The one called `name`.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|misbehaviour| misbehaviour.name == name)
    }

    /// Whether it can be told from good manners only by a client that knows whose server it is: the stub then plays that
    /// server ([`Scenario::misbehaving`](super::Scenario::misbehaving)).
    pub fn plays_a_server(&self) -> bool {
        self.server != Server::Other
    }

    /// Whether an answer over `api` can be wrong in this way.
    pub fn is_of(&self, api: Api) -> bool {
        match api {
            Api::ChatCompletions => true,
            Api::Responses => !self.chat_completions_only,
        }
    }

    /// Of chat completions only.
    const fn of_chat(self) -> Self {
        Self { chat_completions_only: true, ..self }
    }

    /// By this server.
    const fn by(self, server: Server) -> Self {
        Self { server, ..self }
    }

    /// Whether it takes the whole answer, so that no second of its kind has a place beside it.
    pub(super) fn takes_answer(&self) -> bool {
        match self.bend {
            Bend::Answer(_) => true,
            Bend::Chunks(_) | Bend::Pieces(_) => false,
        }
    }
}

const fn new(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    needs: Needs,
    bend: Bend,
) -> Misbehaviour {
    let (chat_completions_only, server) = (false, Server::Other);
    Misbehaviour { name, about, seen, chat_completions_only, needs, bend, server }
}

const fn chunks(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    needs: Needs,
    bend: fn(Vec<Chunk>) -> Vec<Chunk>,
) -> Misbehaviour {
    new(name, about, seen, needs, Bend::Chunks(bend))
}

const fn pieces(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    bend: fn(Vec<Piece>, Api) -> Vec<Piece>,
) -> Misbehaviour {
    new(name, about, seen, Needs::Text, Bend::Pieces(bend))
}

const fn answer(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    bend: fn(&Material) -> Answer,
) -> Misbehaviour {
    new(name, about, seen, Needs::Text, Bend::Answer(bend))
}

/// As [`answer`], to a reply that holds a call.
const fn answer_to_call(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    bend: fn(&Material) -> Answer,
) -> Misbehaviour {
    new(name, about, seen, Needs::Call, Bend::Answer(bend))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::stub::reply::{Form, Reply};
    use serde_json::json;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_words_of_the_language() {
        let names: Vec<&str> = Misbehaviour::all().map(|misbehaviour| misbehaviour.name).collect();
        let unique: HashSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), unique.len(), "{names:?}");
        assert!(names.len() >= 90, "{}", names.len());
        for Misbehaviour { name, about, seen, .. } in Misbehaviour::all() {
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{name}"
            );
            assert!(!about.is_empty() && !about.ends_with('.') && !seen.is_empty(), "{name}");
            assert_eq!(Misbehaviour::named(name).map(|found| found.name), Some(*name));
        }
    }

    /// Each of them changes what is sent, over every API that it is of: a name behind which there is nothing would test
    /// nothing.
    #[test]
    fn each_bends_what_is_sent() {
        let call = json!({"at": "a place of more than a dozen letters"});
        let reply = Reply::new().text("Let me look. ").call("look", &call).call("look", &call);
        for api in [Api::ChatCompletions, Api::Responses] {
            let form = Form { api, is_stream: true, has_usage: true, model: String::from("m") };
            let bytes = |reply: &Reply| {
                reply.answer_in(&form).acts().iter().map(|act| format!("{act:?}")).collect::<Vec<_>>()
            };
            let plain = bytes(&reply);
            for way in Misbehaviour::all().filter(|way| way.is_of(api)) {
                let bent = bytes(&reply.clone().misbehaving(way));
                // Only an event stream that was not asked for is wrong.
                assert_eq!(plain == bent, way.name == "stream-for-json", "{} of {api:?}", way.name);
            }
        }
    }
}
