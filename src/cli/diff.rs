//! Unified diffs.

use similar::TextDiff;

/// What has to change in `before` to make it `after`, as `diff -u` and `patch -p1` have it; empty where nothing has.
pub(super) fn unified(name: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff().header(&format!("a/{name}"), &format!("b/{name}")).to_string()
}
