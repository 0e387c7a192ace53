//! Ids of calls: nine characters of `[A-Za-z0-9]`, a format that every server accepts, unique in a conversation.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Message;

const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LENGTH: usize = 9;

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

    /// Whether every server accepts the id.
    pub(super) fn is_portable(id: &str) -> bool {
        id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
    }

    /// Returns the server's id if it is portable and unused, otherwise a new one.
    pub(super) fn assign(&mut self, server_id: Option<&str>) -> String {
        let mut id = match server_id {
            Some(id) if Self::is_portable(id) => id.to_owned(),
            _ => self.make(),
        };
        while !self.used.insert(id.clone()) {
            id = self.make();
        }
        id
    }

    fn make(&mut self) -> String {
        let mut bits = self.next();
        (0..LENGTH)
            .map(|_| {
                let index = (bits % ALPHABET.len() as u64) as usize;
                bits /= ALPHABET.len() as u64;
                ALPHABET.get(index).map_or('A', |&byte| char::from(byte))
            })
            .collect()
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
    fn portable_ids_are_kept_and_repeated_or_invalid_ones_are_replaced() {
        let mut ids =
            IdGenerator::new(7, &[Message::Tool { tool_call_id: "old123456".into(), content: "1".into() }]);
        assert_eq!(ids.assign(Some("abc123XYZ")), "abc123XYZ");
        for invalid in
            [Some("abc123XYZ"), Some("old123456"), Some("call_0"), Some("functions.f:0"), Some(""), None]
        {
            let id = ids.assign(invalid);
            assert_ne!(Some(id.as_str()), invalid);
            assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        }
    }
}
