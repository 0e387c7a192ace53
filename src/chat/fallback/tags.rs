//! Marks in a text that say that the text between them is the model's thinking.

use serde::{Deserialize, Serialize};

/// What a mark says of the text after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// Thinking begins, in marks of this kind.
    Think(u8),
    /// Thinking in marks of this kind ends, even if nothing said that it began.
    EndThink(u8),
    /// A message of harmony's analysis channel begins: thinking.
    Analysis,
    /// The next message begins, or the reply is over.
    EndMessage,
}

/// Marks by the models that write them. A mark is no beginning of another one.
const TAGS: [(&str, Tag); 31] = [
    ("<think>", Tag::Think(0)),
    ("</think>", Tag::EndThink(0)),
    ("<thinking>", Tag::Think(1)),
    ("</thinking>", Tag::EndThink(1)),
    ("<thought>", Tag::Think(2)),
    ("</thought>", Tag::EndThink(2)),
    ("<reasoning>", Tag::Think(3)),
    ("</reasoning>", Tag::EndThink(3)),
    ("<reflection>", Tag::Think(4)),
    ("</reflection>", Tag::EndThink(4)),
    ("<seed:think>", Tag::Think(5)),
    ("</seed:think>", Tag::EndThink(5)),
    // Magistral.
    ("[THINK]", Tag::Think(6)),
    ("[/THINK]", Tag::EndThink(6)),
    // Command A.
    ("<|START_THINKING|>", Tag::Think(7)),
    ("<|END_THINKING|>", Tag::EndThink(7)),
    // Apertus, OpenThinker, Kimi-VL, MedGemma.
    ("<|inner_prefix|>", Tag::Think(8)),
    ("<|inner_suffix|>", Tag::EndThink(8)),
    ("<|begin_of_thought|>", Tag::Think(9)),
    ("<|end_of_thought|>", Tag::EndThink(9)),
    ("◁think▷", Tag::Think(10)),
    ("◁/think▷", Tag::EndThink(10)),
    ("<unused94>", Tag::Think(11)),
    ("<unused95>", Tag::EndThink(11)),
    // Gemma 4.
    ("<|channel>thought", Tag::Think(12)),
    ("<channel|>", Tag::EndThink(12)),
    // gpt-oss.
    ("<|channel|>analysis", Tag::Analysis),
    ("<|end|>", Tag::EndMessage),
    ("<|start|>", Tag::EndMessage),
    ("<|return|>", Tag::EndMessage),
    ("<|call|>", Tag::EndMessage),
];

/// Reads marks, character by character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TagReader {
    /// What was read of a mark.
    read: String,
}

impl TagReader {
    pub(super) fn new() -> Self {
        Self { read: String::new() }
    }

    /// Whether nothing of a mark was read.
    pub(super) fn is_idle(&self) -> bool {
        self.read.is_empty()
    }

    /// Forgets what was read of a mark.
    pub(super) fn clear(&mut self) {
        self.read.clear();
    }

    /// Takes one character; the mark that it ends.
    pub(super) fn push(&mut self, ch: char) -> Option<Tag> {
        if matches!(ch, '<' | '[' | '◁') {
            self.read.clear();
        } else if self.read.is_empty() {
            return None;
        }
        self.read.push(ch);
        let mut fits = TAGS.iter().filter(|(tag, _)| tag.starts_with(self.read.as_str()));
        match fits.next() {
            Some((tag, says)) if *tag == self.read => {
                self.read.clear();
                Some(*says)
            }
            Some(_) => None,
            None => {
                self.read.clear();
                None
            }
        }
    }
}
