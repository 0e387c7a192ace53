//! Compares two JSON values field by field. Pure functions.
//!
//! Lists are aligned before they are compared: a new tool in the middle is one difference, not one for each tool after
//! it. Long strings are shown from their first difference. A redacted part of the recording equals any text. The order
//! of keys has no meaning, but servers that cache prompts depend on it, so it is compared if requested.
//!
//! Invariants: there are no differences if and only if the values are equal (except for redacted parts); every path
//! refers to an existing value; memory and time are bounded.

mod align;
mod show;

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::secrets::{is_placeholder, is_same_text};
use align::{Pair, align, name_of};
use show::{join, show, show_strings};

/// Maximum number of reported differences. Further ones are only counted.
const MAX_REPORTED: usize = 20;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Path in the recorded value, such as `messages[1].content`; for an added value, path in the current value. Empty:
    /// the root.
    pub path: String,
    /// The kind of difference.
    pub change: Change,
    /// The recorded value as JSON, truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// The current value as JSON, truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// A kind of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The value changed.
    Changed,
    /// The value was removed.
    Removed,
    /// The value was added.
    Added,
    /// The item moved to a different index of its list.
    Moved,
    /// Further differences that are not reported. `now` contains their number.
    More,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, change, recorded, now } = self;
        let location = if path.is_empty() { "(root)" } else { path };
        let recorded = recorded.as_deref().unwrap_or_default();
        let now = now.as_deref().unwrap_or_default();
        match change {
            Change::Changed => write!(f, "{location}: recorded {recorded}, now {now}"),
            Change::Removed => write!(f, "{location}: recorded {recorded}, now absent"),
            Change::Added => write!(f, "{location}: not recorded, now {now}"),
            Change::Moved => write!(f, "{location}: recorded at position {recorded}, now at position {now}"),
            Change::More => write!(f, "and {now} more"),
        }
    }
}

/// Returns the differences; empty if the values are equal. The order of keys does not count.
pub fn differences(recorded: &Value, now: &Value) -> Vec<Difference> {
    let mut collector = Collector { reported: Vec::new(), more: 0 };
    collector.walk(Paths { old: "", new: "" }, recorded, now);
    let Collector { mut reported, more, .. } = collector;
    if more > 0 {
        reported.push(Difference {
            path: String::new(),
            change: Change::More,
            recorded: None,
            now: Some(more.to_string()),
        });
    }
    reported
}

/// A path in the recorded value and in the current value.
#[derive(Clone, Copy)]
struct Paths<'p> {
    old: &'p str,
    new: &'p str,
}

struct Collector {
    reported: Vec<Difference>,
    more: usize,
}

impl Collector {
    fn report(
        &mut self,
        path: &str,
        change: Change,
        both: impl FnOnce() -> (Option<String>, Option<String>),
    ) {
        if self.reported.len() >= MAX_REPORTED {
            self.more += 1;
            return;
        }
        let (recorded, now) = both();
        self.reported.push(Difference { path: path.to_owned(), change, recorded, now });
    }

    fn removed(&mut self, path: &str, recorded: &Value) {
        self.report(path, Change::Removed, || (Some(show(recorded)), None));
    }

    fn added(&mut self, path: &str, now: &Value) {
        self.report(path, Change::Added, || (None, Some(show(now))));
    }

    fn walk(&mut self, at: Paths<'_>, recorded: &Value, now: &Value) {
        match (recorded, now) {
            (Value::Object(before), Value::Object(after)) => self.walk_objects(at, before, after),
            (Value::Array(before), Value::Array(after)) => self.walk_lists(at, before, after),
            (Value::String(before), Value::String(after)) => {
                if !is_same_text(before, after) {
                    self.report(at.old, Change::Changed, || {
                        let (before, after) = show_strings(before, after);
                        (Some(before), Some(after))
                    });
                }
            }
            // A redacted number is a string in the recording.
            (Value::String(before), _) if is_placeholder(before) => {}
            _ if recorded == now => {}
            _ => self.report(at.old, Change::Changed, || (Some(show(recorded)), Some(show(now)))),
        }
    }

    fn walk_objects(&mut self, at: Paths<'_>, before: &Map<String, Value>, after: &Map<String, Value>) {
        let renamed = renamed_keys(before, after);
        let partner = |key: &str| renamed.iter().find(|(old, _)| *old == key).map(|(_, new)| *new);
        for (key, value) in before {
            let old = join(at.old, key);
            let now = if after.contains_key(key) { Some(key.as_str()) } else { partner(key) };
            match now.and_then(|key| Some((key, after.get(key)?))) {
                Some((key, other)) => self.walk(Paths { old: &old, new: &join(at.new, key) }, value, other),
                None => self.removed(&old, value),
            }
        }
        for (key, value) in after {
            if !before.contains_key(key) && !renamed.iter().any(|(_, new)| *new == key) {
                self.added(&join(at.new, key), value);
            }
        }
    }

    fn walk_lists(&mut self, at: Paths<'_>, before: &[Value], after: &[Value]) {
        let old_path = |index: usize| format!("{}[{index}]", at.old);
        let new_path = |index: usize| format!("{}[{index}]", at.new);
        for pair in align(before, after) {
            match pair {
                Pair::Both(old, new) | Pair::Moved(old, new) => {
                    let (Some(value), Some(other)) = (before.get(old), after.get(new)) else { continue };
                    let (old_path, new_path) = (old_path(old), new_path(new));
                    if matches!(pair, Pair::Moved(..)) {
                        self.report(&old_path, Change::Moved, || {
                            let name = name_of(value).map(|name| format!(" ({name})")).unwrap_or_default();
                            (Some(format!("{}{name}", old + 1)), Some((new + 1).to_string()))
                        });
                    }
                    self.walk(Paths { old: &old_path, new: &new_path }, value, other);
                }
                Pair::Removed(old) => {
                    if let Some(value) = before.get(old) {
                        self.removed(&old_path(old), value);
                    }
                }
                Pair::Added(new) => {
                    if let Some(value) = after.get(new) {
                        self.added(&new_path(new), value);
                    }
                }
            }
        }
    }
}

/// Returns the keys that are partly redacted, with their current names.
fn renamed_keys<'k>(
    before: &'k Map<String, Value>,
    after: &'k Map<String, Value>,
) -> Vec<(&'k str, &'k str)> {
    let mut renamed: Vec<(&str, &str)> = Vec::new();
    for key in before.keys().filter(|key| key.contains("[redacted") && !after.contains_key(*key)) {
        let is_free =
            |new: &&String| !before.contains_key(*new) && !renamed.iter().any(|(_, taken)| taken == *new);
        if let Some(new) = after.keys().filter(is_free).find(|new| is_same_text(key, new)) {
            renamed.push((key, new));
        }
        if renamed.len() >= MAX_REPORTED {
            break;
        }
    }
    renamed
}

#[cfg(test)]
mod tests;
