//! Tracks the sentence around the current position: whether it mentions a call or makes one.

use serde::{Deserialize, Serialize};

/// Length of the text before a call that is examined, in bytes.
const RECENT: usize = 48;

/// Phrases that introduce a call that is only shown. A phrase that may also introduce a real call is not included.
const INTRODUCTIONS: [&str; 12] = [
    "example",
    "examples",
    "for instance",
    "e.g.",
    "such as",
    "looks like",
    "looks like this",
    "look like this",
    "looks as follows",
    "looked like this",
    "written like this",
    "is written as",
];

/// The sentence at the current position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::fallback) struct Sentence {
    /// The last non-blank character on this line.
    last: Option<char>,
    /// The end of the text so far.
    recent: String,
    /// The last item was a call that is only shown. Adjacent calls are only shown, too.
    mentioned: bool,
}

impl Sentence {
    pub(in crate::fallback) fn new() -> Self {
        Self { last: None, recent: String::new(), mentioned: false }
    }

    /// Whether a call here is in a sentence that may go on after it.
    pub(in crate::fallback) fn is_open(&self) -> bool {
        self.last.is_some_and(|last| last.is_alphanumeric() || matches!(last, ',' | '('))
    }

    /// Whether a call here is only shown: it is part of a sentence or a table, introduced as an example, or adjacent to
    /// such a call. `next`: the character after the call. `gap`: blanks precede that character.
    pub(in crate::fallback) fn is_mention(&self, gap: bool, next: Option<char>) -> bool {
        let goes_on = next.is_some_and(|next| goes_on(gap, next));
        let in_sentence = match self.last {
            Some('|') => true,
            Some(_) => goes_on && self.is_open(),
            // The text after a call alone does not make the call a mention.
            None => false,
        };
        in_sentence || self.mentioned || self.is_introduced()
    }

    /// Records that the last item is a call that is only shown.
    pub(in crate::fallback) fn mention(&mut self) {
        self.mentioned = true;
    }

    /// Whether the current position is inside JSON.
    pub(in crate::fallback) fn is_inside_json(&self) -> bool {
        let before = end_of(&self.recent).trim_end();
        before.ends_with(['[', '{', '('])
            || before.strip_suffix(',').is_some_and(|item| item.trim_end().ends_with(['}', ']']))
    }

    fn is_introduced(&self) -> bool {
        let is_frame =
            |ch: char| ch.is_whitespace() || ch.is_ascii_digit() || matches!(ch, ':' | ',' | '*' | '_' | '-');
        let before = end_of(&self.recent).trim_end_matches(is_frame);
        INTRODUCTIONS.iter().any(|words| {
            let start = before.len().checked_sub(words.len());
            start.and_then(|start| before.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(words))
        })
    }

    /// Reads text without a line break, or a single line break.
    pub(in crate::fallback) fn take(&mut self, text: &str) {
        if let Some(last) = text.trim_end().chars().next_back() {
            self.last = Some(last);
            self.mentioned = false;
        } else if text == "\n" {
            self.last = None;
        }
        // Keeps at least the text that is examined. The exact length depends on how the text is split.
        if self.recent.len() + text.len() > 4 * RECENT {
            let dropped = self.recent.len() - end_of(&self.recent).len();
            self.recent.drain(..dropped);
        }
        let end = end_of(text);
        if end.len() < text.len() {
            self.recent.clear();
        }
        self.recent.push_str(end);
    }

    /// Begins a sentence. `cut`: on the same line, after a call that was removed from the text.
    pub(in crate::fallback) fn begin(&mut self, cut: bool) {
        self.last = cut.then_some('.');
        self.recent.clear();
    }
}

/// Whether a sentence goes on with `next`. `gap`: blanks precede it.
pub(in crate::fallback) fn goes_on(gap: bool, next: char) -> bool {
    if gap { next.is_lowercase() } else { matches!(next, ',' | '.' | ';' | ':' | '!' | '?' | ')') }
}

/// Returns the last [`RECENT`] bytes of the text, rounded down to whole characters.
fn end_of(text: &str) -> &str {
    let from = (text.len().saturating_sub(RECENT)..text.len()).find(|at| text.is_char_boundary(*at));
    from.and_then(|from| text.get(from..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_in_a_sentence_is_a_mention() {
        let is_mention = |before: &str, gap, next| {
            let mut sentence = Sentence::new();
            before.chars().for_each(|ch| sentence.take(ch.encode_utf8(&mut [0; 4])));
            sentence.is_mention(gap, next)
        };
        for (before, gap, next) in [
            ("You write ", true, Some('t')),
            ("You write ", false, Some('.')),
            ("For example, ", true, None),
            ("An **Example**:\n\n", false, Some('\n')),
            ("### Example 2\n\n", false, None),
            ("Such as\n- ", false, None),
            ("A call looks like this:\n", false, None),
            ("| form | ", true, Some('|')),
        ] {
            assert!(is_mention(before, gap, next), "{before:?}");
        }
        for (before, gap, next) in [
            ("I look: ", true, Some('t')),
            ("I look. ", true, Some('S')),
            ("I look ", false, None),
            ("I look ", false, Some('\n')),
            ("", true, Some('i')),
            ("", false, Some('b')),
            ("", false, Some('.')),
            ("For example, so.\n", false, None),
        ] {
            assert!(!is_mention(before, gap, next), "{before:?}");
        }
    }
}
