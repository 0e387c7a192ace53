//! `diff`: what changed between two texts, as a unified diff.
//!
//! To find the shortest is quadratic at worst. After a while the search settles for a longer one that is right all the
//! same.

use std::time::Duration;

use similar::TextDiff;

/// Longest text, in bytes, and most lines of one.
const MAX_TEXT: usize = 4 << 20;
const MAX_LINES: usize = 200_000;

/// Two texts, and how their difference is to be shown.
pub(super) struct Compared {
    pub(super) old: String,
    pub(super) new: String,
    /// Unchanged lines around each change.
    pub(super) context: usize,
    pub(super) old_name: String,
    pub(super) new_name: String,
}

/// An error for a text that is too long.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.len() > MAX_TEXT {
        return Err(format!("a text is longer than {} MiB", MAX_TEXT >> 20));
    }
    if memchr::memchr_iter(b'\n', text.as_bytes()).count() > MAX_LINES {
        return Err(format!("a text has more than {MAX_LINES} lines"));
    }
    Ok(())
}

impl Compared {
    /// The difference; empty where there is none. The search for a short one takes `limit` at most.
    pub(super) fn diff(&self, limit: Duration) -> String {
        if self.old == self.new {
            return String::new();
        }
        let diff = TextDiff::configure().timeout(limit).diff_lines(self.old.as_str(), self.new.as_str());
        diff.unified_diff().context_radius(self.context).header(&self.old_name, &self.new_name).to_string()
    }
}
