//! Ids of calls, unique in a conversation. The id of the server is kept: some templates print it, and some servers store
//! state in it. A new id has nine characters of `[A-Za-z0-9]`, a format that every server accepts.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Message;
use crate::message::portable_id;

/// Maximum length of an id that is kept, in bytes. Some gateways store a signature in the id.
const MAX_LENGTH: usize = 16 * 1024;
/// Maximum distance between a repeated id and the next unused one.
const MAX_STEPS: u32 = 1_000;

/// A generator of ids from a seed. The same seed and the same calls produce the same ids.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct IdGenerator {
    state: u64,
    used: BTreeSet<String>,
}

impl IdGenerator {
    /// Creates a generator that does not produce ids of `conversation`.
    pub(super) fn new(seed: u64, conversation: &[Message]) -> Self {
        let mut used = BTreeSet::new();
        for message in conversation {
            match message {
                Message::Assistant { tool_calls, .. } => {
                    used.extend(tool_calls.iter().map(|call| call.id.clone()));
                }
                Message::Tool { tool_call_id, .. } => {
                    used.insert(tool_call_id.clone());
                }
                Message::System { .. } | Message::User { .. } => {}
            }
        }
        Self { state: seed, used }
    }

    /// Returns the state of the generator, without the used ids.
    pub(super) fn state(&self) -> u64 {
        self.state
    }

    /// Sets the state of the generator.
    pub(super) fn set_state(&mut self, state: u64) {
        self.state = state;
    }

    /// Registers a used id.
    pub(super) fn reserve(&mut self, id: &str) {
        self.used.insert(id.to_owned());
    }

    /// Whether the id can be kept: it consists of visible ASCII characters.
    pub(super) fn is_usable(id: &str) -> bool {
        (1..=MAX_LENGTH).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
    }

    /// Returns the server's id if it is unused, otherwise a new one.
    pub(super) fn assign(&mut self, server_id: Option<&str>) -> String {
        let mut id = match server_id {
            Some(id) if Self::is_usable(id) => self.continued(id),
            _ => self.make(),
        };
        while !self.used.insert(id.clone()) {
            id = self.make();
        }
        id
    }

    /// Returns an id. If it is used and ends in a number, like `functions.bash:0` of a server that counts the calls of
    /// each reply, returns the one with the next unused number.
    fn continued(&self, id: &str) -> String {
        let form = id.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: Option<u32> = id.get(form.len()..).and_then(|number| number.parse().ok());
        match number {
            Some(number) if self.used.contains(id) && form.ends_with([':', '_', '-']) => (1..=MAX_STEPS)
                .map(|step| format!("{form}{}", number.saturating_add(step)))
                .find(|id| !self.used.contains(id))
                .unwrap_or_else(|| id.to_owned()),
            _ => id.to_owned(),
        }
    }

    fn make(&mut self) -> String {
        portable_id(self.next())
    }

    /// `SplitMix64` (Steele, Lea, Flood 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_the_server_are_kept_and_missing_or_repeated_ones_are_replaced() {
        let old = Message::tool("functions.f:0", "1");
        let mut ids = IdGenerator::new(7, &[old]);
        for (server, expected) in [
            (Some("call_abc"), Some("call_abc")),
            (Some("functions.f:1"), Some("functions.f:1")),
            // Servers that count the calls of each reply.
            (Some("functions.f:0"), Some("functions.f:2")),
            (Some("functions.f:0"), Some("functions.f:3")),
            (Some("call_abc"), None),
            (Some(""), None),
            (Some("a b\n"), None),
            (None, None),
        ] {
            let id = ids.assign(server);
            match expected {
                Some(expected) => assert_eq!(id, expected),
                None => assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}"),
            }
        }
    }
}
