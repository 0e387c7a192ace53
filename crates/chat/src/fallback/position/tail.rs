//! The text after a call: closing marks that belong to the call, and the end of the reply.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::marks::{Mark, mark_at};
use crate::fallback::families::Family;

/// Maximum length of a closing mark, in bytes.
const MAX_MARK: usize = 64;

/// Words in the names of the tags around calls and their arguments. `</s>` ends a turn.
const WORDS: [&str; 5] = ["tool", "call", "function", "invo", "param"];

/// What a text after a call may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fallback) enum Leftover {
    /// Blanks, or the start of a closing mark.
    Open,
    /// Blanks and a closing mark.
    Mark,
    /// Other text.
    None,
}

/// Classifies the text after a call, up to the last character read. Nothing is open where a call may stand, so a closing
/// mark after it closes nothing: it was written twice or belongs to another form.
pub(in crate::fallback) fn leftover(text: &str) -> Leftover {
    static CLOSES: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        let closes = Family::ALL.iter().flat_map(|family| family.form().closes);
        closes.filter(|close| **close != "```").copied().collect()
    });
    let mark = text.trim_start();
    if CLOSES.contains(mark) {
        return Leftover::Mark;
    }
    if mark.len() > MAX_MARK {
        return Leftover::None;
    }
    let is_name =
        |name: &str| !name.contains(|ch: char| !(ch.is_alphanumeric() || "_:.-|｜▁\" ".contains(ch)));
    match mark.strip_prefix("</").map(|name| name.strip_suffix('>').unwrap_or(name)) {
        Some(name) if is_name(name) && !name.starts_with(' ') => {
            let is_of_call = name == "s" || WORDS.iter().any(|word| name.contains(word));
            match mark.ends_with('>') {
                true if is_of_call => Leftover::Mark,
                true => Leftover::None,
                false => Leftover::Open,
            }
        }
        _ if CLOSES.iter().any(|close| close.starts_with(mark)) || "</".starts_with(mark) => Leftover::Open,
        _ => Leftover::None,
    }
}

/// Whether the reply ends with `text`, the text after its last call: only closing marks, control tokens and blanks, up
/// to the message of another role.
pub(crate) fn ends_reply(text: &str) -> bool {
    let mut rest = text.trim_start();
    // A result of a tool in a reply without its special tokens (`channels`).
    if rest.starts_with("functions.")
        && rest.split_once(" to=").is_some_and(|(name, _)| name.len() <= MAX_MARK)
    {
        return true;
    }
    while !rest.is_empty() {
        let length = match mark_at(rest) {
            Some((Mark::OtherRole, _)) => return true,
            Some((Mark::Token | Mark::Message, length)) => length,
            Some((Mark::Think(_) | Mark::EndThink(_) | Mark::Analysis, _)) => return false,
            None => {
                let end = rest.find(['>', ']']).map_or(0, |end| end + 1);
                let is_mark = rest.get(..end).is_some_and(|mark| leftover(mark) == Leftover::Mark);
                if !is_mark {
                    // The reply may end in a mark.
                    return leftover(rest) == Leftover::Open;
                }
                end
            }
        };
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_marks_are_left_over() {
        for (text, expected) in [
            ("", Leftover::Open),
            ("\n </to", Leftover::Open),
            ("\n</function_invocation>", Leftover::Mark),
            ("</xai:function_call\">", Leftover::Mark),
            ("<|tool_call_end|>", Leftover::Mark),
            ("<tool_call|>", Leftover::Mark),
            ("<too", Leftover::Open),
            ("</think>", Leftover::None),
            ("</doc>", Leftover::None),
            ("<tool_call>", Leftover::None),
            ("So.", Leftover::None),
            ("</ b>", Leftover::None),
        ] {
            assert_eq!(leftover(text), expected, "{text}");
        }
    }

    #[test]
    fn a_reply_ends_with_marks_or_with_another_role() {
        for text in [
            "",
            "\n\n",
            "</tool_call>\n",
            "<|im_end|>\n",
            "</s>",
            "\n</tool",
            "<|eom_id|><|eot_id|>",
            "<tool_response>\n{}\n</tool_response>\nSo.",
            "\n<|im_end|>\n<|im_start|>user\nThanks",
            "functions.look to=assistantcommentary{}assistantfinalSo.",
        ] {
            assert!(ends_reply(text), "{text}");
        }
        for text in ["So.", "```", "-}", "</doc>", "</think>", "<|im_end|> So.", "<think>x", "User: thanks"] {
            assert!(!ends_reply(text), "{text}");
        }
    }
}
