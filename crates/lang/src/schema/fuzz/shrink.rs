//! Shrinks a value while a condition stays true.

use serde_json::{Map, Value, json};

/// Returns the smallest arguments found, starting with `arguments`, for which `is_still` is true. Removes members,
/// shortens lists and strings, and moves numbers towards 0. Calls `is_still` at most `budget` times.
pub fn shrink(
    arguments: Map<String, Value>,
    budget: usize,
    mut is_still: impl FnMut(&Map<String, Value>) -> bool,
) -> Map<String, Value> {
    let mut smallest = Value::Object(arguments);
    let mut left = budget;
    'again: loop {
        for candidate in smaller(&smallest, 0) {
            let Value::Object(arguments) = &candidate else { continue };
            if left == 0 {
                break 'again;
            }
            left -= 1;
            if is_still(arguments) {
                smallest = candidate;
                continue 'again;
            }
        }
        break;
    }
    match smallest {
        Value::Object(arguments) => arguments,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// Maximum depth of a value that is shrunk.
const MAX_DEPTH: usize = 32;
/// Maximum number of list items that are removed or shrunk individually.
const MAX_ITEMS: usize = 50;

/// Returns smaller values, smallest first.
fn smaller(value: &Value, depth: usize) -> Vec<Value> {
    if depth > MAX_DEPTH {
        return Vec::new();
    }
    match value {
        Value::Null => Vec::new(),
        Value::Bool(flag) => {
            if *flag {
                vec![json!(false)]
            } else {
                Vec::new()
            }
        }
        Value::Number(_) => smaller_numbers(value),
        Value::String(text) => smaller_strings(text),
        Value::Array(items) => {
            let length = items.len();
            let mut found = Vec::new();
            if length > 0 {
                found.push(json!([]));
            }
            if length > 1 {
                let (first, second) = items.split_at(length / 2);
                found.extend([Value::from(first), Value::from(second)]);
            }
            for index in 0..length.min(MAX_ITEMS) {
                let mut fewer = items.clone();
                fewer.remove(index);
                found.push(Value::Array(fewer));
            }
            let inside = items.iter().take(MAX_ITEMS).enumerate();
            found.extend(interleave(inside.map(|(index, item)| (index, smaller(item, depth + 1)))).map(
                |(index, item)| {
                    let mut others = items.clone();
                    if let Some(slot) = others.get_mut(index) {
                        *slot = item;
                    }
                    Value::Array(others)
                },
            ));
            found
        }
        Value::Object(members) => {
            let mut found: Vec<Value> = members
                .keys()
                .map(|name| {
                    let mut fewer = members.clone();
                    fewer.shift_remove(name);
                    Value::Object(fewer)
                })
                .collect();
            let inside = members.iter().map(|(name, member)| (name, smaller(member, depth + 1)));
            found.extend(interleave(inside).map(|(name, member)| {
                let mut others = members.clone();
                others.insert(name.clone(), member);
                Value::Object(others)
            }));
            found
        }
    }
}

/// Interleaves the candidates: the first of each slot, then the second of each, and so on. Attempts are expensive, so
/// every slot gets one early.
fn interleave<P: Clone>(slots: impl Iterator<Item = (P, Vec<Value>)>) -> impl Iterator<Item = (P, Value)> {
    let mut ranked: Vec<(usize, P, Value)> = slots
        .flat_map(|(slot, candidates)| {
            let candidates = candidates.into_iter().enumerate();
            candidates.map(move |(rank, candidate)| (rank, slot.clone(), candidate))
        })
        .collect();
    ranked.sort_by_key(|(rank, ..)| *rank);
    ranked.into_iter().map(|(_, slot, candidate)| (slot, candidate))
}

fn smaller_numbers(value: &Value) -> Vec<Value> {
    if let Some(integer) = value.as_i64() {
        // Subtract all of it, a half, a quarter, and so on down to one, to find a bound in few steps.
        let steps = std::iter::successors(Some(integer), |step| Some(step / 2)).take_while(|step| *step != 0);
        return steps.map(|step| Value::from(integer - step)).collect();
    }
    let Some(number) = value.as_f64() else { return Vec::new() };
    let mut candidates = vec![json!(0)];
    if number.abs() < 1e15 {
        candidates.push(json!(number as i64));
    }
    if number.abs() > 1.0 {
        candidates.push(json!(number / 2.0));
    }
    // Only towards fewer digits, to guarantee termination.
    candidates.retain(|candidate| {
        candidate.as_f64().is_some_and(|smaller| smaller.abs() < number.abs())
            || (candidate.is_i64() && candidate.as_f64() == Some(number))
    });
    candidates
}

fn smaller_strings(text: &str) -> Vec<Value> {
    let characters: Vec<char> = text.chars().collect();
    let length = characters.len();
    if length == 0 {
        return Vec::new();
    }
    let part =
        |from: usize, to: usize| Value::String(characters.get(from..to).unwrap_or_default().iter().collect());
    let mut found = vec![json!("")];
    if length > 1 {
        found.extend([part(0, length / 2), part(length / 2, length), part(1, length)]);
        let steps =
            std::iter::successors(Some(length / 4), |step| Some(step / 2)).take_while(|step| *step > 1);
        found.extend(steps.map(|step| part(0, length - step)));
        found.push(part(0, length - 1));
    }
    if length <= MAX_ITEMS {
        found.extend((1..length.saturating_sub(1)).map(|dropped| {
            let kept = characters.iter().enumerate().filter(|(index, _)| *index != dropped);
            Value::String(kept.map(|(_, character)| *character).collect())
        }));
    }
    // Replace characters with plain letters, so that only significant special characters remain.
    if characters.iter().any(|character| *character != 'a') {
        found.push(Value::String("a".repeat(length)));
        for (index, _) in
            characters.iter().enumerate().filter(|(_, c)| !c.is_ascii_alphanumeric()).take(MAX_ITEMS)
        {
            let replaced = characters.iter().enumerate();
            let replaced = replaced.map(|(at, character)| if at == index { 'a' } else { *character });
            found.push(Value::String(replaced.collect()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_only_the_relevant_part() {
        let arguments = json!({
            "text": format!("{}%{}", "x".repeat(5000), "é".repeat(300)),
            "n": -12_345,
            "more": {"a": [1, 2, 3], "b": "c"},
            "list": [5, 6.25, 1e300]
        });
        let Value::Object(arguments) = arguments else { unreachable!() };
        let text = shrink(arguments.clone(), 1000, |smaller| {
            smaller.get("text").and_then(Value::as_str).is_some_and(|text| text.contains('%'))
        });
        assert_eq!(Value::Object(text), json!({"text": "%"}));
        let number = shrink(arguments.clone(), 1000, |smaller| {
            smaller.get("n").and_then(Value::as_i64).is_some_and(|number| number < -99)
        });
        assert_eq!(Value::Object(number), json!({"n": -100}));
        let list = shrink(arguments.clone(), 1000, |smaller| {
            smaller.get("list").and_then(Value::as_array).is_some_and(|list| list.len() > 1)
        });
        assert_eq!(Value::Object(list), json!({"list": [0, 0]}));
        assert_eq!(shrink(arguments.clone(), 0, |_| true), arguments);
        assert_eq!(shrink(arguments, 1_000_000, |_| true), Map::new());
    }
}
