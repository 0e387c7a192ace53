//! Harmony's channels in a reply whose special tokens the server took away: `analysisWe need it.assistantcommentary to=functions.f
//! json{…}assistantfinalIt is so.`
//!
//! What remains of the marks is words that stick to the text around them. They are looked for only in a reply that begins with such a
//! word, and what is doubtful is thinking: there calls are not made. So is a tool's result that the model makes up
//! (`functions.f to=assistantcommentary{…}`).

use serde::{Deserialize, Serialize};

/// What such a reply begins with.
const FIRST: &str = "analysis";

/// What begins each further message, and whether it is thinking.
const NEXT: [(&str, Channel); 3] = [
    ("assistantanalysis", Channel::Thought),
    ("assistantcommentary", Channel::Said),
    ("assistantfinal", Channel::Said),
];

/// What the text is that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Thought,
    Said,
}

/// Reads such words, character by character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Channels {
    /// The reply began, with so many characters of the first word.
    Begin { read: usize },
    /// It is such a reply.
    Stripped {
        /// What was read of a word.
        read: String,
        /// The character before that.
        before: Option<char>,
    },
    /// It is another.
    None,
}

impl Channels {
    pub(super) fn new() -> Self {
        Self::Begin { read: 0 }
    }

    /// Takes one character; what the text after it is, if it ends a word.
    pub(super) fn push(&mut self, ch: char) -> Option<Channel> {
        match self {
            Self::None => None,
            Self::Begin { read } => {
                if FIRST.chars().nth(*read) == Some(ch) {
                    *read += 1;
                    return None;
                }
                // Followed by a blank or a comma it is a word like others.
                if *read < FIRST.len() || !ch.is_alphanumeric() {
                    *self = Self::None;
                    return None;
                }
                *self = Self::Stripped { read: String::new(), before: None };
                Some(Channel::Thought)
            }
            Self::Stripped { read, before } => {
                read.push(ch);
                while !NEXT.iter().any(|(word, _)| word.starts_with(read.as_str())) {
                    *before = Some(read.remove(0));
                }
                let (_, channel) = NEXT.iter().find(|(word, _)| *word == read.as_str())?;
                read.clear();
                // What is addressed to the assistant is no word of its own.
                let is_result = before.replace(ch) == Some('=');
                Some(if is_result { Channel::Thought } else { *channel })
            }
        }
    }

    /// Whether the next character matters: it may not be passed over.
    pub(super) fn is_reading(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether the reply is one whose marks were taken away.
    pub(super) fn is_stripped(&self) -> bool {
        matches!(self, Self::Stripped { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_stick_to_the_text_say_what_it_is() {
        for (text, channels) in [
            ("analysisWe.assistantcommentary to=", vec![(8, Channel::Thought), (29, Channel::Said)]),
            ("analysisaassistantfinal", vec![(8, Channel::Thought), (22, Channel::Said)]),
            ("analysisf to=assistantcommentary{}", vec![(8, Channel::Thought), (31, Channel::Thought)]),
            ("analysisx assistant", vec![(8, Channel::Thought)]),
            ("analysis of it. assistantfinal", vec![]),
            ("The analysisX assistantfinal", vec![]),
            ("assistantfinal", vec![]),
            ("", vec![]),
        ] {
            let mut reader = Channels::new();
            let found: Vec<_> =
                text.char_indices().filter_map(|(at, ch)| Some((at, reader.push(ch)?))).collect();
            assert_eq!(found, channels, "{text}");
        }
    }
}
