//! Reads the channels of the harmony format in a reply from which the server removed the special tokens:
//! `analysisWe need it.assistantcommentary to=functions.f json{…}assistantfinalIt is so.`
//!
//! Only the words of the channel markers remain, without blanks around them. They are read only in a reply that begins
//! with such a word. Ambiguous text counts as reasoning, where no call is made. So does a tool result that the model
//! invents (`functions.f to=assistantcommentary{…}`).

use serde::{Deserialize, Serialize};

/// The word that begins such a reply.
const FIRST: &str = "analysis";

/// The words that begin each further message, with its channel.
const NEXT: [(&str, Channel); 3] = [
    ("assistantanalysis", Channel::Reasoning),
    ("assistantcommentary", Channel::Visible),
    ("assistantfinal", Channel::Visible),
];

/// The channel of the text that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Reasoning,
    Visible,
}

/// A streaming reader of channel words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Channels {
    /// At the start of the reply, after `read` characters of the first word.
    Begin { read: usize },
    /// In a reply without its special tokens.
    Stripped {
        /// The part of a word read so far.
        read: String,
        /// The character before that part.
        before: Option<char>,
    },
    /// In any other reply.
    None,
}

impl Channels {
    pub(super) fn new() -> Self {
        Self::Begin { read: 0 }
    }

    /// Reads one character. If it completes a word, returns the channel of the text that follows.
    pub(super) fn push(&mut self, ch: char) -> Option<Channel> {
        match self {
            Self::None => None,
            Self::Begin { read } => {
                if FIRST.chars().nth(*read) == Some(ch) {
                    *read += 1;
                    return None;
                }
                // Before a blank or a comma it is an ordinary word.
                if *read < FIRST.len() || !ch.is_alphanumeric() {
                    *self = Self::None;
                    return None;
                }
                *self = Self::Stripped { read: String::new(), before: None };
                Some(Channel::Reasoning)
            }
            Self::Stripped { read, before } => {
                read.push(ch);
                while !NEXT.iter().any(|(word, _)| word.starts_with(read.as_str())) {
                    *before = Some(read.remove(0));
                }
                let (_, channel) = NEXT.iter().find(|(word, _)| *word == read.as_str())?;
                read.clear();
                // After `to=`, the word is the recipient of a tool result.
                let is_result = before.replace(ch) == Some('=');
                Some(if is_result { Channel::Reasoning } else { *channel })
            }
        }
    }

    /// Whether the next character may change the state, so it must not be skipped.
    pub(super) fn is_reading(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether the reply lacks its special tokens.
    pub(super) fn is_stripped(&self) -> bool {
        matches!(self, Self::Stripped { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_words_are_read_inside_the_text() {
        for (text, channels) in [
            ("analysisWe.assistantcommentary to=", vec![(8, Channel::Reasoning), (29, Channel::Visible)]),
            ("analysisaassistantfinal", vec![(8, Channel::Reasoning), (22, Channel::Visible)]),
            ("analysisf to=assistantcommentary{}", vec![(8, Channel::Reasoning), (31, Channel::Reasoning)]),
            ("analysisx assistant", vec![(8, Channel::Reasoning)]),
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
