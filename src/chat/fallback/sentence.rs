//! The sentence that the next character stands in: whether it speaks of a call or makes one.

use serde::{Deserialize, Serialize};

/// How much of the text before a call is looked at, in bytes.
const RECENT: usize = 48;

/// What stands before a call that is shown, not made. Only what a model that is about to call would not say.
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

/// What the text so far says of the sentence that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sentence {
    /// The last character on this line that is no blank.
    last: Option<char>,
    /// The end of the text so far.
    recent: String,
    /// What came last was a call that is only shown; its neighbours are, too.
    mentioned: bool,
}

impl Sentence {
    pub(super) fn new() -> Self {
        Self { last: None, recent: String::new(), mentioned: false }
    }

    /// Whether a call here stands in a sentence that may go on after it.
    pub(super) fn is_open(&self) -> bool {
        self.last.is_some_and(|last| last.is_alphanumeric() || matches!(last, ',' | '('))
    }

    /// Whether a call here, after which `next` comes (with blanks between, where `gap`), is shown and not made: it is
    /// part of a sentence or a table, introduced as an example, or stands beside a call that is.
    pub(super) fn is_mention(&self, gap: bool, next: Option<char>) -> bool {
        let goes_on = next.is_some_and(|next| goes_on(gap, next));
        let in_sentence = match self.last {
            Some('|') => true,
            Some(_) => goes_on && self.is_open(),
            // What comes after a call alone never makes it a mention.
            None => false,
        };
        in_sentence || self.mentioned || self.is_introduced()
    }

    /// A call was shown.
    pub(super) fn mention(&mut self) {
        self.mentioned = true;
    }

    /// Whether what begins here is part of JSON that began before.
    pub(super) fn is_inside_json(&self) -> bool {
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

    /// Takes a run of text on one line, or a line end.
    pub(super) fn take(&mut self, text: &str) {
        if let Some(last) = text.trim_end().chars().next_back() {
            self.last = Some(last);
            self.mentioned = false;
        } else if text == "\n" {
            self.last = None;
        }
        // More than is looked at may be kept, which depends on how the text was cut.
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

    /// What came before belongs to another sentence. With `cut` its line goes on.
    pub(super) fn begin(&mut self, cut: bool) {
        self.last = cut.then_some('.');
        self.recent.clear();
    }
}

/// Whether a sentence goes on with `next`. `gap`: blanks precede it.
pub(super) fn goes_on(gap: bool, next: char) -> bool {
    if gap { next.is_lowercase() } else { matches!(next, ',' | '.' | ';' | ':' | '!' | '?' | ')') }
}

/// The last [`RECENT`] bytes, or as many as are whole characters.
fn end_of(text: &str) -> &str {
    let from = (text.len().saturating_sub(RECENT)..text.len()).find(|at| text.is_char_boundary(*at));
    from.and_then(|from| text.get(from..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_goes_through_a_mention() {
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
