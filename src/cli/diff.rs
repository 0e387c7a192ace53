//! Two texts → what differs, as `diff -u` and `git diff` show it.

use similar::TextDiff;

/// What has to change in `before` to make it `after`, as `git apply` and `patch -p1` take it; empty where nothing has.
pub(super) fn unified(name: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff().header(&format!("a/{name}"), &format!("b/{name}")).to_string()
}
