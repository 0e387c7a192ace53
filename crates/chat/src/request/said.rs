//! Stores the messages of users and tools in a conversation, and finds a text or a call in them.
//!
//! Each message is read once, when it is added to the conversation. Calls in it are stored in canonical form
//! (`canonical`), so they are found in any notation. The texts are stored in comparable form (`alike`), to find forms
//! that are not readable as a call. The first few searches read all text. Later ones use an index of its blocks, so a
//! reply with many calls is cheap in a long conversation. Texts shorter than two blocks, and texts that consist only of
//! very frequent blocks, are always searched without the index.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::alike::comparable;
use super::canonical::canonical;
use super::coerce::coerce_arguments;
use crate::fallback::calls_in;
use crate::{Message, RawArguments};

/// Number of searches without an index. Building the index costs as much as a few dozen searches.
const PLAIN_LOOKUPS: usize = 8;

/// Length of a block, in bytes.
const BLOCK: usize = 16;

/// Maximum number of a text's blocks that are looked up at each alignment.
const MAX_BLOCKS: usize = 8;

/// The messages of users and tools.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    /// The number of messages of the conversation that were read.
    messages: usize,
    /// All texts in comparable form. A character that no such text contains separates them.
    all: Vec<u8>,
    /// The calls in canonical form.
    calls: HashSet<String>,
    lookups: usize,
    blocks: Option<Blocks>,
    /// The number of searches that read all text.
    reads: usize,
}

/// The positions of all complete blocks, by content.
#[derive(Debug, Clone, Default)]
struct Blocks {
    /// For each content, the number of the last block with it, and their count.
    last: HashMap<[u8; BLOCK], (u32, u32)>,
    /// For each block, the previous block with the same content.
    before: Vec<Option<u32>>,
}

impl Said {
    /// Reads the messages that were added to the conversation since the last use of this function.
    pub(super) fn read(&mut self, conversation: &[Message]) {
        for message in conversation.get(self.messages..).unwrap_or_default() {
            match message {
                Message::User { content } | Message::Tool { tool_call_id: _, content } => self.add(content),
                Message::System { .. } | Message::Assistant { .. } => {}
            }
        }
        self.messages = conversation.len();
    }

    fn add(&mut self, text: &str) {
        self.all.extend_from_slice(comparable(text).as_bytes());
        self.all.push(0);
        calls_in(text, &mut |call| {
            self.calls.insert(canonical(&call.name, &coerce_arguments(call, &Value::Null)));
        });
        if let Some(blocks) = &mut self.blocks {
            blocks.extend(&self.all);
        }
    }

    /// Whether a message contains a call of tool `name` with these arguments.
    pub(super) fn holds_call(&self, name: &str, arguments: &RawArguments) -> bool {
        !self.calls.is_empty() && self.calls.contains(&canonical(name, arguments))
    }

    /// Whether a message contains `text`, in comparable form.
    pub(super) fn holds(&mut self, text: &str) -> bool {
        let text = comparable(text);
        let text = text.as_bytes();
        self.lookups += 1;
        if self.lookups > PLAIN_LOOKUPS && self.blocks.is_none() {
            self.blocks.insert(Blocks::default()).extend(&self.all);
        }
        let found = self.blocks.as_ref().and_then(|blocks| blocks.find(&self.all, text));
        found.unwrap_or_else(|| {
            self.reads += 1;
            memchr::memmem::find(&self.all, text).is_some()
        })
    }
}

impl Blocks {
    /// Adds the complete blocks of `all` that are not in the index.
    fn extend(&mut self, all: &[u8]) {
        for block in all.chunks_exact(BLOCK).skip(self.before.len()) {
            let (Ok(block), Ok(number)) = (<[u8; BLOCK]>::try_from(block), u32::try_from(self.before.len()))
            else {
                return;
            };
            let before = self.last.get(&block).copied();
            self.last.insert(block, (number, before.map_or(1, |(_, count)| count.saturating_add(1))));
            self.before.push(before.map(|(number, _)| number));
        }
    }

    /// Whether `all` contains `text`. `None` if the text is too short or has too many possible positions.
    fn find(&self, all: &[u8], text: &[u8]) -> Option<bool> {
        // A text of this length covers a complete block at any position. All blocks must be in the index.
        if text.len() < 2 * BLOCK || self.before.len() < all.len() / BLOCK {
            return None;
        }
        // Comparisons must not cost more than a search of all text.
        let mut left = all.len();
        for offset in 0..BLOCK {
            // The rarest block that the text covers if it begins `offset` bytes before a block.
            let here = text.get(offset..).unwrap_or_default().chunks_exact(BLOCK).take(MAX_BLOCKS);
            let places = here.enumerate().map(|(nth, held)| {
                let last = <[u8; BLOCK]>::try_from(held).ok().and_then(|held| self.last.get(&held));
                (offset + nth * BLOCK, last.copied())
            });
            let rarest = places.min_by_key(|(_, last)| last.map_or(0, |(_, count)| count));
            let Some((before, Some((last, _)))) = rarest else { continue };
            let mut place = Some(last);
            while let Some(block) = place {
                let block = usize::try_from(block).unwrap_or(usize::MAX);
                place = self.before.get(block).copied().flatten();
                let start = block.saturating_mul(BLOCK).checked_sub(before);
                let Some(rest) = start.and_then(|start| all.get(start..)) else { continue };
                let alike = rest.iter().zip(text).take_while(|(one, other)| one == other).count();
                if alike == text.len() {
                    return Some(true);
                }
                left = left.checked_sub(alike + 1)?;
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: usize) -> String {
        format!(r#"{{"id":{n},"name":"look","arguments":{{"q":"row{n}ofit"}}}},"#)
    }

    fn user(text: &str) -> Message {
        Message::User { content: text.to_owned() }
    }

    fn said(texts: &[&str]) -> Said {
        let conversation: Vec<Message> = texts.iter().map(|text| user(text)).collect();
        let mut said = Said::default();
        said.read(&conversation);
        said
    }

    #[test]
    fn messages_can_be_added_between_searches() {
        let mut conversation = Vec::new();
        let mut said = Said::default();
        for n in 0..40 {
            conversation.push(user(&row(n)));
            said.read(&conversation);
            said.read(&conversation);
            for known in 0..40 {
                let arguments = serde_json::json!({"q": format!("row{known}ofit")});
                let arguments = RawArguments::Object { value: arguments.as_object().unwrap().clone() };
                assert_eq!(said.holds_call("look", &arguments), known <= n, "{known} after {n}");
                assert_eq!(said.holds(&row(known)), known <= n, "{known} after {n}");
            }
        }
        let mut at_once = Said::default();
        at_once.read(&conversation);
        assert_eq!((at_once.all, at_once.calls), (said.all, said.calls));
        assert_eq!(said.reads, PLAIN_LOOKUPS);
    }

    #[test]
    fn the_index_finds_all_texts() {
        let rows: String = (0..500).map(row).collect();
        let texts = [rows.as_str(), "", "short", &"a".repeat(5_000), "日本語のテキストがここにある。"];
        let mut said = said(&texts);
        let needles = |said: &Said| -> Vec<String> {
            let all = String::from_utf8(said.all.clone()).unwrap();
            let starts = (0..all.len()).step_by(61).filter(|at| all.is_char_boundary(*at));
            starts
                .flat_map(|at| [1, 31, 32, 40, 90, 700].map(|length| (at, at + length)))
                .filter_map(|(from, to)| all.get(from..to).map(str::to_owned))
                // Parts of two texts.
                .filter(|needle| !needle.contains('\0'))
                .collect()
        };
        for needle in needles(&said) {
            assert!(said.holds(&needle), "{needle}");
            let other = format!("{needle}!");
            assert!(!said.holds(&other), "{other}");
        }
        assert!(said.blocks.is_some());
        // A match must not cross the boundary of two texts.
        assert!(!said.holds(&format!("{}short", row(499))));
    }

    #[test]
    fn most_searches_use_the_index() {
        let rows: String = (0..2_000).map(row).collect();
        let mut said = said(&[&rows]);
        for n in 0..300 {
            assert!(!said.holds(&format!(r#"{{"name": "look", "arguments": {{"q": "{n}"}}}}"#)));
            assert!(!said.holds(&format!(r#"{{"name": "look", "arguments": {{"q": "row {n} of this"}}}}"#)));
            assert!(said.holds(&row(n)));
        }
        assert_eq!(said.reads, PLAIN_LOOKUPS);
        // Only very frequent blocks: searched without the index.
        let mut said = super::tests::said(&[&format!("{}ab", "a".repeat(20_000))]);
        (0..20).for_each(|_| assert!(!said.holds(&format!("{}b!", "a".repeat(1_000)))));
        assert_eq!(said.reads, 20);
    }
}
