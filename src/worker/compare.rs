//! What differs between two JSON values, field by field. Pure.
//!
//! Lists are aligned before they are compared: a tool in the middle that is new is one difference, not one for each that
//! follows it. Of long strings that is shown where they part. A place that was redacted in the recording equals whatever
//! stands there now. The order of keys is no difference in meaning; servers that cache prompts see one, so it is told
//! where it is asked for.
//!
//! Invariants: nothing is told exactly if the values are equal (but for redacted places); every path leads to something
//! on its side; memory and time are bounded, however large the lists.

mod align;
mod show;

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::secrets::{is_placeholder, is_same_text};
use align::{Pair, align, name_of};
use show::{join, show, show_strings};

/// Differences beyond this many are only counted.
const MAX_TOLD: usize = 20;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where: `messages[1].content`. In what was recorded; of something added, in what is there now. Empty: the whole.
    pub path: String,
    /// In what way.
    pub change: Change,
    /// What was recorded, as JSON, cut to where it matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// What is there now, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// In what way something differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It has another value.
    Changed,
    /// It is no longer there.
    Removed,
    /// It was not there.
    Added,
    /// It stands at another place of its list.
    Moved,
    /// The same members in another order.
    KeyOrder,
    /// So many more differences are not told; the number is in `now`.
    More,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, change, recorded, now } = self;
        let place = if path.is_empty() { "the whole" } else { path };
        let recorded = recorded.as_deref().unwrap_or_default();
        let now = now.as_deref().unwrap_or_default();
        match change {
            Change::Changed => write!(f, "{place}: recorded {recorded}, now {now}"),
            Change::Removed => write!(f, "{place}: recorded {recorded}, now absent"),
            Change::Added => write!(f, "{place}: not recorded, now {now}"),
            Change::Moved => write!(f, "{place}: recorded at place {recorded}, now at place {now}"),
            Change::KeyOrder => write!(f, "{place}: keys recorded in the order {recorded}, now {now}"),
            Change::More => write!(f, "and {now} more"),
        }
    }
}

/// What differs; empty when the values are equal. `key_order`: whether the order of keys counts.
pub(super) fn differences(recorded: &Value, now: &Value, key_order: bool) -> Vec<Difference> {
    let mut found = Found { told: Vec::new(), more: 0, key_order };
    found.walk(Paths { old: "", new: "" }, recorded, now);
    let Found { mut told, more, .. } = found;
    if more > 0 {
        told.push(Difference {
            path: String::new(),
            change: Change::More,
            recorded: None,
            now: Some(more.to_string()),
        });
    }
    told
}

/// Where something stands in what was recorded, and in what is there now.
#[derive(Clone, Copy)]
struct Paths<'p> {
    old: &'p str,
    new: &'p str,
}

struct Found {
    told: Vec<Difference>,
    more: usize,
    key_order: bool,
}

impl Found {
    fn tell(&mut self, path: &str, change: Change, both: impl FnOnce() -> (Option<String>, Option<String>)) {
        if self.told.len() >= MAX_TOLD {
            self.more += 1;
            return;
        }
        let (recorded, now) = both();
        self.told.push(Difference { path: path.to_owned(), change, recorded, now });
    }

    fn removed(&mut self, path: &str, recorded: &Value) {
        self.tell(path, Change::Removed, || (Some(show(recorded)), None));
    }

    fn added(&mut self, path: &str, now: &Value) {
        self.tell(path, Change::Added, || (None, Some(show(now))));
    }

    fn walk(&mut self, at: Paths<'_>, recorded: &Value, now: &Value) {
        match (recorded, now) {
            (Value::Object(before), Value::Object(after)) => self.walk_objects(at, before, after),
            (Value::Array(before), Value::Array(after)) => self.walk_lists(at, before, after),
            (Value::String(before), Value::String(after)) => {
                if !is_same_text(before, after) {
                    self.tell(at.old, Change::Changed, || {
                        let (before, after) = show_strings(before, after);
                        (Some(before), Some(after))
                    });
                }
            }
            // A number that was a secret is a text in the recording.
            (Value::String(before), _) if is_placeholder(before) => {}
            _ if recorded == now => {}
            _ => self.tell(at.old, Change::Changed, || (Some(show(recorded)), Some(show(now)))),
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
        if self.key_order {
            let common = |one: &Map<String, Value>, other: &Map<String, Value>| -> Vec<String> {
                one.keys().filter(|key| other.contains_key(*key)).cloned().collect()
            };
            let (recorded, now) = (common(before, after), common(after, before));
            if recorded != now {
                self.tell(at.old, Change::KeyOrder, || (Some(recorded.join(", ")), Some(now.join(", "))));
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
                        self.tell(&old_path, Change::Moved, || {
                            let name = name_of(value).map(|name| format!(" ({name})")).unwrap_or_default();
                            (Some(format!("{}{name}", old + 1)), Some((new + 1).to_string()))
                        });
                    }
                    self.walk(Paths { old: &old_path, new: &new_path }, value, other);
                }
                Pair::Gone(old) => {
                    if let Some(value) = before.get(old) {
                        self.removed(&old_path(old), value);
                    }
                }
                Pair::New(new) => {
                    if let Some(value) = after.get(new) {
                        self.added(&new_path(new), value);
                    }
                }
            }
        }
    }
}

/// Keys of which a part was redacted, with what they are now.
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
        if renamed.len() >= MAX_TOLD {
            break;
        }
    }
    renamed
}

#[cfg(test)]
mod tests;
