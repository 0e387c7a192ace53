//! `diff`: computes the unified diff of two texts.
//!
//! Finding the shortest diff takes quadratic time in the worst case. After a time limit, the search returns a longer
//! diff, which is also correct.

use std::time::Duration;

use similar::TextDiff;

/// Maximum length of a text in bytes, and maximum number of its lines.
const MAX_TEXT: usize = 4 << 20;
const MAX_LINES: usize = 200_000;

/// The input of a diff.
pub(super) struct DiffInput {
    pub(super) old: String,
    pub(super) new: String,
    /// Number of unchanged lines around each change.
    pub(super) context: usize,
    pub(super) old_name: String,
    pub(super) new_name: String,
}

/// Returns an error for a text that is too long.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.len() > MAX_TEXT {
        return Err(format!("a text is longer than {} MiB", MAX_TEXT >> 20));
    }
    if memchr::memchr_iter(b'\n', text.as_bytes()).count() > MAX_LINES {
        return Err(format!("a text has more than {MAX_LINES} lines"));
    }
    Ok(())
}

impl DiffInput {
    /// Returns the diff, empty for equal texts. `limit` is the time limit for finding a short one.
    pub(super) fn diff(&self, limit: Duration) -> String {
        if self.old == self.new {
            return String::new();
        }
        let diff = TextDiff::configure().timeout(limit).diff_lines(self.old.as_str(), self.new.as_str());
        diff.unified_diff().context_radius(self.context).header(&self.old_name, &self.new_name).to_string()
    }
}
