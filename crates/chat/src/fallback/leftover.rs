//! Reads marks that are left over directly after a call: closing tags that were written twice or belong to another form.
//!
//! Nothing is open where a call may stand, so a closing tag after it closes nothing.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::context::is_reasoning_mark;
use super::families::Family;

/// Maximum length of a mark, in bytes.
const MAX_MARK: usize = 64;

/// What a text after a call may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leftover {
    /// Blanks, or the start of a mark.
    Open,
    /// Blanks and a mark.
    Mark,
    /// Other text.
    None,
}

/// Classifies the text after a call, up to the last character read.
pub(super) fn leftover(text: &str) -> Leftover {
    static CLOSES: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        Family::ALL
            .iter()
            .flat_map(|family| family.form().closes)
            .filter(|close| **close != "```")
            .copied()
            .collect()
    });
    let mark = text.trim_start();
    if CLOSES.contains(mark) {
        return Leftover::Mark;
    }
    if mark.len() > MAX_MARK || is_reasoning_mark(mark) {
        return Leftover::None;
    }
    let name = mark.strip_prefix("</");
    let is_name =
        |name: &str| !name.contains(|ch: char| !(ch.is_alphanumeric() || "_:.-|｜▁\" ".contains(ch)));
    match name.map(|name| name.strip_suffix('>').unwrap_or(name)) {
        Some(name) if is_name(name) && !name.starts_with(' ') => {
            if mark.ends_with('>') && !name.is_empty() {
                Leftover::Mark
            } else {
                Leftover::Open
            }
        }
        _ if CLOSES.iter().any(|close| close.starts_with(mark)) || "</".starts_with(mark) => Leftover::Open,
        _ => Leftover::None,
    }
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
            ("<tool_call>", Leftover::None),
            ("So.", Leftover::None),
            ("</ b>", Leftover::None),
            ("</>", Leftover::Open),
        ] {
            assert_eq!(leftover(text), expected, "{text}");
        }
    }
}
