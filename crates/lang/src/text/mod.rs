//! Source text, spans and positions.
//!
//! A [`Span`] is a half-open byte range in one source. A [`LineIndex`] converts offsets to the 1-based line and column
//! that messages show; columns count characters.

mod hash;
mod line_index;
mod removal;
mod source;
mod span;
mod web_page;

pub use hash::{digest, sha256_base64};
pub use line_index::{LineColumn, LineIndex};
pub use removal::removal;
pub use source::{Location, SourceFile, SourceId, Sources};
pub use span::{Span, Spanned};
pub use web_page::web_page_refusal;

/// Whether a terminal interprets `character` instead of showing it: control characters and the Unicode characters that
/// change the text direction, which can disguise text.
pub fn is_control(character: char) -> bool {
    let turns = matches!(character, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns
}

/// Returns `text` with control characters, line ends included, written as escapes.
pub fn one_line(text: String) -> String {
    if !text.contains(is_control) {
        return text;
    }
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if is_control(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// Appends to a text that grows in small parts. Its capacity grows by a quarter instead of doubling, because a worker may
/// hold a thousand such texts, but by at least a kilobyte.
pub fn append(text: &mut String, more: &str) {
    if text.capacity() - text.len() < more.len() {
        text.reserve_exact(more.len() + (text.len() / 4).max(1 << 10));
    }
    text.push_str(more);
}

/// Returns a number with its noun: `1 tool`, `2 tools`.
pub fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}
