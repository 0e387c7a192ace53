//! An index of the messages of users and tools in a conversation, which finds a text or a call in them.
//!
//! Each message is indexed once, before the first search that follows it. Calls in it are stored in canonical form
//! (`canonical`), so they are found in any notation. The texts are stored in comparable form (`comparable`), to find
//! forms that are not readable as a call.
//!
//! The first few searches read all text. Later searches use an index of its blocks, so a reply with many calls is cheap
//! in a long conversation. Texts shorter than two blocks, and texts that consist only of very frequent blocks, are
//! always searched without the index.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::canonical::canonical;
use super::coerce::coerce_arguments;
use super::comparable::comparable;
use crate::fallback::calls_in;
use crate::{Message, RawArguments};

/// Number of searches before the index of blocks is built. Building it costs as much as a few dozen searches.
const FULL_SEARCHES: usize = 8;

/// Length of a block, in bytes.
const BLOCK: usize = 16;

/// Maximum number of a text's blocks that are looked up at each alignment.
const MAX_BLOCKS: usize = 8;

/// An index of the messages of users and tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessageIndex {
    /// Number of indexed messages of the conversation, of any role.
    messages: usize,
    /// All texts in comparable form, separated by a character that none of them contains.
    texts: Vec<u8>,
    /// The calls in canonical form.
    calls: HashSet<String>,
    /// Number of searches for a text.
    searches: usize,
    /// The index of the texts' blocks, from the first search that uses it.
    blocks: Option<Blocks>,
    /// Number of searches that read all text.
    full_searches: usize,
}

/// The positions of all complete blocks, by content.
#[derive(Debug, Clone, Default)]
struct Blocks {
    /// For each content, the number of the last block with this content, and the count of such blocks.
    last: HashMap<[u8; BLOCK], (u32, u32)>,
    /// For each block, the previous block with the same content.
    before: Vec<Option<u32>>,
}

impl MessageIndex {
    /// Adds the messages that were added to the conversation since the last call of this function.
    pub(super) fn update(&mut self, conversation: &[Arc<Message>]) {
        for message in conversation.get(self.messages..).unwrap_or_default() {
            match &**message {
                Message::User { content, .. } | Message::Tool { content, .. } => self.add(content),
                Message::System { .. } | Message::Assistant { .. } => {}
            }
        }
        self.messages = conversation.len();
    }

    fn add(&mut self, text: &str) {
        self.texts.extend_from_slice(comparable(text).as_bytes());
        self.texts.push(0);
        calls_in(text, &mut |call| {
            self.calls.insert(canonical(&call.name, &coerce_arguments(call, &Value::Null)));
        });
        if let Some(blocks) = &mut self.blocks {
            blocks.extend(&self.texts);
        }
    }

    /// Whether a message contains a call of tool `name` with these arguments.
    pub(super) fn contains_call(&self, name: &str, arguments: &RawArguments) -> bool {
        !self.calls.is_empty() && self.calls.contains(&canonical(name, arguments))
    }

    /// Whether a message contains `text`, in comparable form.
    pub(super) fn contains_text(&mut self, text: &str) -> bool {
        let text = comparable(text);
        let text = text.as_bytes();
        self.searches += 1;
        if self.searches > FULL_SEARCHES && self.blocks.is_none() {
            self.blocks.insert(Blocks::default()).extend(&self.texts);
        }
        let found = self.blocks.as_ref().and_then(|blocks| blocks.find(&self.texts, text));
        found.unwrap_or_else(|| {
            self.full_searches += 1;
            memchr::memmem::find(&self.texts, text).is_some()
        })
    }
}

impl Blocks {
    /// Adds the complete blocks of `texts` that are not in the index.
    fn extend(&mut self, texts: &[u8]) {
        for block in texts.chunks_exact(BLOCK).skip(self.before.len()) {
            let (Ok(block), Ok(number)) = (<[u8; BLOCK]>::try_from(block), u32::try_from(self.before.len()))
            else {
                return;
            };
            let before = self.last.get(&block).copied();
            self.last.insert(block, (number, before.map_or(1, |(_, count)| count.saturating_add(1))));
            self.before.push(before.map(|(number, _)| number));
        }
    }

    /// Whether `texts` contains `text`. `None` if the text is too short or has too many possible positions.
    fn find(&self, texts: &[u8], text: &[u8]) -> Option<bool> {
        // A text of this length covers a complete block at any position. All blocks must be in the index.
        if text.len() < 2 * BLOCK || self.before.len() < texts.len() / BLOCK {
            return None;
        }
        // Comparisons must not cost more than a search of all text.
        let mut left = texts.len();
        for offset in 0..BLOCK {
            // The rarest block that the text covers if it begins `offset` bytes before a block.
            let here = text.get(offset..).unwrap_or_default().chunks_exact(BLOCK).take(MAX_BLOCKS);
            let positions = here.enumerate().map(|(nth, block)| {
                let last = <[u8; BLOCK]>::try_from(block).ok().and_then(|block| self.last.get(&block));
                (offset + nth * BLOCK, last.copied())
            });
            let rarest = positions.min_by_key(|(_, last)| last.map_or(0, |(_, count)| count));
            let Some((before, Some((last, _)))) = rarest else { continue };
            let mut next = Some(last);
            while let Some(block) = next {
                let block = usize::try_from(block).unwrap_or(usize::MAX);
                next = self.before.get(block).copied().flatten();
                let start = block.saturating_mul(BLOCK).checked_sub(before);
                let Some(rest) = start.and_then(|start| texts.get(start..)) else { continue };
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

    fn user(text: &str) -> Arc<Message> {
        Arc::new(Message::user(text))
    }

    fn index_of(texts: &[&str]) -> MessageIndex {
        let conversation: Vec<Arc<Message>> = texts.iter().map(|text| user(text)).collect();
        let mut index = MessageIndex::default();
        index.update(&conversation);
        index
    }

    #[test]
    fn messages_can_be_added_between_searches() {
        let mut conversation = Vec::new();
        let mut index = MessageIndex::default();
        for n in 0..40 {
            conversation.push(user(&row(n)));
            index.update(&conversation);
            index.update(&conversation);
            for known in 0..40 {
                let arguments = serde_json::json!({"q": format!("row{known}ofit")});
                let arguments = RawArguments::Object { value: arguments.clone().try_into().unwrap() };
                assert_eq!(index.contains_call("look", &arguments), known <= n, "{known} after {n}");
                assert_eq!(index.contains_text(&row(known)), known <= n, "{known} after {n}");
            }
        }
        let mut at_once = MessageIndex::default();
        at_once.update(&conversation);
        assert_eq!((at_once.texts, at_once.calls), (index.texts, index.calls));
        assert_eq!(index.full_searches, FULL_SEARCHES);
    }

    #[test]
    fn the_index_finds_all_texts() {
        let rows: String = (0..500).map(row).collect();
        let texts = [rows.as_str(), "", "short", &"a".repeat(5_000), "日本語のテキストがここにある。"];
        let mut index = index_of(&texts);
        let needles = |index: &MessageIndex| -> Vec<String> {
            let all = String::from_utf8(index.texts.clone()).unwrap();
            let starts = (0..all.len()).step_by(61).filter(|at| all.is_char_boundary(*at));
            starts
                .flat_map(|at| [1, 31, 32, 40, 90, 700].map(|length| (at, at + length)))
                .filter_map(|(from, to)| all.get(from..to).map(str::to_owned))
                // Parts of two texts.
                .filter(|needle| !needle.contains('\0'))
                .collect()
        };
        for needle in needles(&index) {
            assert!(index.contains_text(&needle), "{needle}");
            let other = format!("{needle}!");
            assert!(!index.contains_text(&other), "{other}");
        }
        assert!(index.blocks.is_some());
        // A match must not cross the boundary of two texts.
        assert!(!index.contains_text(&format!("{}short", row(499))));
    }

    #[test]
    fn most_searches_use_the_index() {
        let rows: String = (0..2_000).map(row).collect();
        let mut index = index_of(&[&rows]);
        for n in 0..300 {
            assert!(!index.contains_text(&format!(r#"{{"name": "look", "arguments": {{"q": "{n}"}}}}"#)));
            assert!(
                !index.contains_text(&format!(
                    r#"{{"name": "look", "arguments": {{"q": "row {n} of this"}}}}"#
                ))
            );
            assert!(index.contains_text(&row(n)));
        }
        assert_eq!(index.full_searches, FULL_SEARCHES);
        // Only very frequent blocks: searched without the index.
        let mut index = index_of(&[&format!("{}ab", "a".repeat(20_000))]);
        (0..20).for_each(|_| assert!(!index.contains_text(&format!("{}b!", "a".repeat(1_000)))));
        assert_eq!(index.full_searches, 20);
    }
}
