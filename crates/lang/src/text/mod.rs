//! Source text, spans and positions.
//!
//! A [`Span`] is a half-open byte range in one source. A [`LineIndex`] converts offsets to the 1-based line and column
//! that messages show; columns count characters.

mod base64;
mod cut;
mod hash;
mod line_index;
mod moved;
mod names;
mod removal;
mod shown;
mod source;
mod span;
mod web_page;

pub use base64::{from_base64, to_base64};
pub use cut::cut;
pub use hash::{digest, fnv1a, sha256_base64, sha256_hex};
pub use line_index::{LineColumn, LineIndex};
pub use moved::MoveSpans;
pub use names::{MAX_NAME, distinct, portable};
pub use removal::removal;
pub use shown::{exact, is_readable, one_line, readable};
pub use source::{Location, Place, SourceFile, SourceId, Sources};
pub use span::{Span, Spanned};
pub use web_page::web_page_refusal;

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
