//! Marks in a text that say what the text between them is: the model's thinking, or something shown.

use serde::{Deserialize, Serialize};

/// What a mark says of the text after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// Thinking begins.
    Think,
    /// Thinking ends, even if nothing said that it began.
    EndThink,
    /// A message of harmony's analysis channel begins: thinking.
    Analysis,
    /// The next message begins, or the reply is over.
    EndMessage,
    /// Something shown begins, up to its end or that of the paragraph.
    Shown,
    /// The same, over paragraphs.
    Block,
    /// Its end.
    EndShown,
}

/// Marks by the models that write them. A mark is no beginning of another one.
const TAGS: [(&str, Tag); 52] = [
    ("<think>", Tag::Think),
    ("</think>", Tag::EndThink),
    ("<thinking>", Tag::Think),
    ("</thinking>", Tag::EndThink),
    ("<thought>", Tag::Think),
    ("</thought>", Tag::EndThink),
    ("<reasoning>", Tag::Think),
    ("</reasoning>", Tag::EndThink),
    ("<reflection>", Tag::Think),
    ("</reflection>", Tag::EndThink),
    ("<seed:think>", Tag::Think),
    ("</seed:think>", Tag::EndThink),
    // Magistral.
    ("[THINK]", Tag::Think),
    ("[/THINK]", Tag::EndThink),
    // Command A.
    ("<|START_THINKING|>", Tag::Think),
    ("<|END_THINKING|>", Tag::EndThink),
    // Apertus, OpenThinker, Kimi-VL, MedGemma.
    ("<|inner_prefix|>", Tag::Think),
    ("<|inner_suffix|>", Tag::EndThink),
    ("<|begin_of_thought|>", Tag::Think),
    ("<|end_of_thought|>", Tag::EndThink),
    ("◁think▷", Tag::Think),
    ("◁/think▷", Tag::EndThink),
    ("<unused94>", Tag::Think),
    ("<unused95>", Tag::EndThink),
    // Gemma 4.
    ("<|channel>thought", Tag::Think),
    ("<channel|>", Tag::EndThink),
    // gpt-oss.
    ("<|channel|>analysis", Tag::Analysis),
    ("<|end|>", Tag::EndMessage),
    ("<|start|>", Tag::EndMessage),
    ("<|return|>", Tag::EndMessage),
    ("<|call|>", Tag::EndMessage),
    // HTML in Markdown, and the tags that prompts teach models to put around examples.
    ("<code>", Tag::Shown),
    ("</code>", Tag::EndShown),
    ("<q>", Tag::Shown),
    ("</q>", Tag::EndShown),
    ("<blockquote>", Tag::Shown),
    ("</blockquote>", Tag::EndShown),
    ("<pre>", Tag::Block),
    ("</pre>", Tag::EndShown),
    ("<example>", Tag::Block),
    ("</example>", Tag::EndShown),
    ("<quote>", Tag::Shown),
    ("</quote>", Tag::EndShown),
    ("<!--", Tag::Shown),
    // A result that the model makes up: what stands in it, nobody said.
    ("<tool_response>", Tag::Block),
    ("</tool_response>", Tag::EndShown),
    ("<tool_result>", Tag::Block),
    ("</tool_result>", Tag::EndShown),
    ("<function_results>", Tag::Block),
    ("</function_results>", Tag::EndShown),
    ("[TOOL_RESULTS]", Tag::Block),
    ("[/TOOL_RESULTS]", Tag::EndShown),
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
