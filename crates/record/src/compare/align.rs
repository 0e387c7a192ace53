//! Aligns the items of two lists.
//!
//! Equal items are aligned first. Between them, items with the same name (tools), role (messages) or JSON type are
//! aligned in order. The remaining items were removed, added or, if both lists contain the name, moved.

use std::collections::HashMap;

use serde_json::Value;

/// Maximum product of the lengths of the differing parts. Longer lists are compared index by index.
const MAX_CELLS: usize = 1 << 20;

/// Score of an equal pair. A pair of the same kind scores 1.
const EQUAL: u32 = 4;

/// One step of an alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pair {
    /// The same item, changed or not.
    Both(usize, usize),
    /// The same item at a different index.
    Moved(usize, usize),
    /// Only in the first list.
    Removed(usize),
    /// Only in the second list.
    Added(usize),
}

pub(super) fn align(before: &[Value], after: &[Value]) -> Vec<Pair> {
    let start = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let (old, new) = (before.get(start..).unwrap_or_default(), after.get(start..).unwrap_or_default());
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old_len, new_len) = (old.len() - end, new.len() - end);
    let (old, new) = (old.get(..old_len).unwrap_or_default(), new.get(..new_len).unwrap_or_default());
    let middle = if old_len.saturating_mul(new_len) > MAX_CELLS {
        index_by_index(old_len, new_len)
    } else {
        join_moved(best(old, new), old, new)
    };
    // The equal items at both ends are included because the order of their keys may differ.
    let shifted = middle.into_iter().map(|pair| match pair {
        Pair::Both(i, j) => Pair::Both(i + start, j + start),
        Pair::Moved(i, j) => Pair::Moved(i + start, j + start),
        Pair::Removed(i) => Pair::Removed(i + start),
        Pair::Added(j) => Pair::Added(j + start),
    });
    let head = (0..start).map(|index| Pair::Both(index, index));
    let tail = (0..end).map(|index| Pair::Both(start + old_len + index, start + new_len + index));
    head.chain(shifted).chain(tail).collect()
}

/// Returns the name of an item: a tool in the format of any API, or a parameter.
pub(super) fn name_of(value: &Value) -> Option<&str> {
    value.pointer("/function/name").or_else(|| value.get("name")).and_then(Value::as_str)
}

fn index_by_index(old: usize, new: usize) -> Vec<Pair> {
    let common = old.min(new);
    let both = (0..common).map(|index| Pair::Both(index, index));
    both.chain((common..old).map(Pair::Removed)).chain((common..new).map(Pair::Added)).collect()
}

/// Returns the alignment with the highest score.
fn best(old: &[Value], new: &[Value]) -> Vec<Pair> {
    let (old_marks, new_marks) = marks(old, new);
    let width = new.len() + 1;
    let mut score = vec![0_u32; (old.len() + 1) * width];
    let at = |score: &[u32], i: usize, j: usize| score.get(i * width + j).copied().unwrap_or(0);
    let gain = |i: usize, j: usize| match (old_marks.get(i), new_marks.get(j)) {
        (Some(one), Some(other)) if one.whole == other.whole => EQUAL,
        (Some(one), Some(other)) if one.kind == other.kind => 1,
        _ => 0,
    };
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            let gain = gain(i, j);
            let paired = if gain > 0 { gain + at(&score, i + 1, j + 1) } else { 0 };
            let most = paired.max(at(&score, i + 1, j)).max(at(&score, i, j + 1));
            if let Some(cell) = score.get_mut(i * width + j) {
                *cell = most;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < old.len() && j < new.len() {
        let gain = gain(i, j);
        if gain > 0 && at(&score, i, j) == gain + at(&score, i + 1, j + 1) {
            pairs.push(Pair::Both(i, j));
            (i, j) = (i + 1, j + 1);
        } else if at(&score, i, j) == at(&score, i + 1, j) {
            pairs.push(Pair::Removed(i));
            i += 1;
        } else {
            pairs.push(Pair::Added(j));
            j += 1;
        }
    }
    pairs.extend((i..old.len()).map(Pair::Removed));
    pairs.extend((j..new.len()).map(Pair::Added));
    pairs
}

/// An item as two numbers, for fast comparison.
struct Mark {
    /// Equal for equal items.
    whole: usize,
    /// Equal for items with the same name, role or JSON type.
    kind: usize,
}

fn marks(old: &[Value], new: &[Value]) -> (Vec<Mark>, Vec<Mark>) {
    let mut wholes: HashMap<String, usize> = HashMap::new();
    let mut kinds: HashMap<String, usize> = HashMap::new();
    let mut mark = |value: &Value| {
        let next = wholes.len();
        let whole = *wholes.entry(value.to_string()).or_insert(next);
        let next = kinds.len();
        Mark { whole, kind: *kinds.entry(kind_of(value)).or_insert(next) }
    };
    let old = old.iter().map(&mut mark).collect();
    (old, new.iter().map(mark).collect())
}

fn kind_of(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let word = |key: &str| members.get(key).and_then(Value::as_str);
            match (name_of(value), word("role").or_else(|| word("type"))) {
                (Some(name), _) => format!("name {name}"),
                (None, Some(role)) => format!("role {role}"),
                (None, None) => String::from("object"),
            }
        }
        Value::Array(_) => String::from("array"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => String::from("scalar"),
    }
}

/// Joins a removed and an added item with the same name into a moved item.
fn join_moved(pairs: Vec<Pair>, old: &[Value], new: &[Value]) -> Vec<Pair> {
    let mut removed: HashMap<&str, usize> = HashMap::new();
    for pair in &pairs {
        if let Pair::Removed(index) = pair
            && let Some(name) = old.get(*index).and_then(name_of)
        {
            removed.entry(name).or_insert(*index);
        }
    }
    let mut moved: HashMap<usize, usize> = HashMap::new();
    for pair in &pairs {
        if let Pair::Added(index) = pair
            && let Some(name) = new.get(*index).and_then(name_of)
            && let Some(from) = removed.remove(name)
        {
            moved.insert(from, *index);
        }
    }
    let targets: std::collections::HashSet<usize> = moved.values().copied().collect();
    let joined = pairs.into_iter().filter_map(|pair| match pair {
        Pair::Removed(index) => Some(moved.get(&index).map_or(pair, |to| Pair::Moved(index, *to))),
        Pair::Added(index) if targets.contains(&index) => None,
        Pair::Both(..) | Pair::Moved(..) | Pair::Added(_) => Some(pair),
    });
    joined.collect()
}
