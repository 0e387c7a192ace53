//! Faults that real servers are known to have, by name.
//!
//! A fault changes a reply at one of four stages: its chunks, its events, the pieces of its body, or the whole answer.
//! The tables are also the documentation: `deftool stub --list` prints them, and `docs/faults.md` is generated from them.
//! The expected outcome of each fault is listed in `tests/stub/outcomes*.txt`, and the worker is tested against it.

mod answers;
mod calls;
mod edit;
mod edit_events;
mod events;
mod messages;
mod raw_events;
mod replies;
mod streams;

use serde::Serialize;

use super::fault::Fault;

/// A group of related faults.
#[derive(Debug, Serialize)]
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// The faults.
    pub members: &'static [Fault],
}

/// All faults, grouped.
pub static GROUPS: [Group; 6] = [
    Group { title: "Tool calls", members: calls::TABLE },
    Group { title: "Finish, role, content, token counts", members: replies::TABLE },
    Group { title: "Messages API", members: messages::TABLE },
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::ALL;
    use crate::model::AnswerFormat;
    use crate::reply::Reply;
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
        for api in ALL.iter().copied() {
            let format = AnswerFormat::stream(api);
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
