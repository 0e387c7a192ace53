//! Unified diffs of two texts.

use similar::TextDiff;

/// Returns a unified diff for `git apply` or `patch -p1`; empty if the texts are equal.
pub(in crate::cli) fn unified(name: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff().header(&format!("a/{name}"), &format!("b/{name}")).to_string()
}
