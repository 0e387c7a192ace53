//! Reads the marks around the model's reasoning.

use serde::{Deserialize, Serialize};

/// The meaning of a mark for the text that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// Reasoning begins, in marks of this kind.
    Think(u8),
    /// Reasoning in marks of this kind ends, even if there was no opening mark.
    EndThink(u8),
    /// A message in the analysis channel of the harmony format begins: reasoning.
    Analysis,
    /// The next message begins, or the reply ends.
    EndMessage,
}

/// Marks, grouped by the models that write them. No mark is a prefix of another mark.
const TAGS: [(&str, Tag); 37] = [
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
    // Hunyuan 3, MiniMax M3, Kimi K3.
    ("<think:opensource>", Tag::Think(13)),
    ("</think:opensource>", Tag::EndThink(13)),
    ("<mm:think>", Tag::Think(14)),
    ("</mm:think>", Tag::EndThink(14)),
    ("<|open|>think", Tag::Think(15)),
    ("<|close|>think", Tag::EndThink(15)),
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

/// Whether a text is a mark.
pub(in crate::fallback) fn is_reasoning_mark(text: &str) -> bool {
    TAGS.iter().any(|(mark, _)| *mark == text)
}

/// Whether a text may contain reasoning: marks, or the name of a channel whose marks the server removed.
pub(in crate::fallback) fn may_contain_reasoning(text: &str) -> bool {
    // Every mark begins with `<`, `[` or `◁`.
    let has_start = memchr::memchr3(b'<', b'[', 0xe2, text.as_bytes()).is_some();
    memchr::memmem::find(text.as_bytes(), b"analysis").is_some()
        || (has_start && TAGS.iter().any(|(mark, _)| text.contains(mark)))
}

/// A streaming reader of marks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TagReader {
    /// The part of a mark read so far.
    read: String,
}

impl TagReader {
    pub(super) fn new() -> Self {
        Self { read: String::new() }
    }

    /// Whether the reader is outside a mark.
    pub(super) fn is_idle(&self) -> bool {
        self.read.is_empty()
    }

    /// Reads one character. Returns the mark that it completes, and the length of the mark before the character, in
    /// bytes.
    pub(super) fn push(&mut self, ch: char) -> Option<(Tag, usize)> {
        if matches!(ch, '<' | '[' | '◁') {
            self.read.clear();
        } else if self.read.is_empty() {
            return None;
        }
        self.read.push(ch);
        let mut matching = TAGS.iter().filter(|(text, _)| text.starts_with(self.read.as_str()));
        match matching.next() {
            Some((text, tag)) if *text == self.read => {
                self.read.clear();
                Some((*tag, text.len() - ch.len_utf8()))
            }
            Some(_) => None,
            None => {
                self.read.clear();
                None
            }
        }
    }
}
