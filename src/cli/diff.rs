//! Two texts → what differs, as `diff -u` and `git diff` show it.

use similar::TextDiff;

/// The unified diff of a file called `name`; empty where the texts are the same.
pub(super) fn unified(name: &str, before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().context_radius(3).header(name, name).to_string()
}
