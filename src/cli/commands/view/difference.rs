//! The difference of two timelines: entries are aligned by kind and tool, then compared field by field.
//!
//! Times, ids and the time of the BIOS differ between any two runs, so they are not compared.

use std::time::{Duration, Instant};

use deftool_record::{Change, Difference, Entry, EntryKind, RequestTimeline, Timeline, differences};
use serde::Serialize;
use serde_json::{Value, json};
use similar::{Algorithm, ChangeTag, DiffOp, TextDiff, capture_diff_slices_deadline};

/// Time limit for the alignments. After it, they are approximate.
const LIMIT: Duration = Duration::from_secs(5);
/// Members of messages that are random or depend on the time.
const VARIABLE_MEMBERS: [&str; 3] = ["id", "tool_call_id", "call_id"];
/// Start of the line of the BIOS with the time.
const BIOS_TIME: &str = "Time at submit: ";

/// A row: an entry of each side, or of one side only.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// Index of the request.
    request: usize,
    /// Index of the entry in the first file.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<usize>,
    /// Index of the entry in the second file.
    #[serde(skip_serializing_if = "Option::is_none")]
    right: Option<usize>,
    /// Differing fields of a pair.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Field>,
    /// The words of two differing texts, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    words: Vec<(Side, String)>,
}

/// A differing field: its path, and its value on each side.
#[derive(Debug, Serialize)]
struct Field {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    right: Option<String>,
}

/// The side that contains a part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Side {
    Both,
    Left,
    Right,
}

impl Row {
    /// Whether the sides differ.
    pub(super) fn differs(&self) -> bool {
        self.left.is_none() || self.right.is_none() || !self.fields.is_empty() || !self.words.is_empty()
    }
}

/// Returns the aligned entries of two timelines. Requests are paired in order.
pub(super) fn rows(left: &Timeline, right: &Timeline) -> Vec<Row> {
    let deadline = Instant::now() + LIMIT;
    let requests = left.requests.len().max(right.requests.len());
    let pair =
        |request| request_rows(request, left.requests.get(request), right.requests.get(request), deadline);
    (0..requests).flat_map(pair).collect()
}

fn request_rows(
    request: usize,
    left: Option<&RequestTimeline>,
    right: Option<&RequestTimeline>,
    deadline: Instant,
) -> Vec<Row> {
    let [old, new] = [left, right].map(|side| side.map(|side| side.entries.as_slice()).unwrap_or_default());
    let [old_keys, new_keys] =
        [old, new].map(|entries| entries.iter().map(|entry| key(&entry.kind)).collect::<Vec<_>>());
    let one_sided = |left, right| Row { request, left, right, fields: Vec::new(), words: Vec::new() };
    let mut rows = Vec::new();
    for op in capture_diff_slices_deadline(Algorithm::Myers, &old_keys, &new_keys, Some(deadline)) {
        if matches!(op, DiffOp::Equal { .. }) {
            for (at, now) in op.old_range().zip(op.new_range()) {
                if let (Some(before), Some(after)) = (old.get(at), new.get(now)) {
                    let (fields, words) = compare((before, left), (after, right), deadline);
                    rows.push(Row { request, left: Some(at), right: Some(now), fields, words });
                }
            }
        } else {
            rows.extend(op.old_range().map(|index| one_sided(Some(index), None)));
            rows.extend(op.new_range().map(|index| one_sided(None, Some(index))));
        }
    }
    rows
}

/// Returns the key by which entries are aligned.
fn key(kind: &EntryKind) -> (&'static str, String) {
    match kind {
        // A failed attempt has no counterpart in a run where the first attempt succeeds.
        EntryKind::Turn(turn) => {
            ("turn", String::from(if turn.first_ms.is_some() { "answered" } else { "" }))
        }
        EntryKind::Reasoning(_) => ("reasoning", String::new()),
        EntryKind::Text(_) => ("text", String::new()),
        EntryKind::Call(call) => ("call", call.name.clone()),
        EntryKind::Approval { name, .. } => ("approval", name.clone()),
        EntryKind::Signal { name, .. } => ("signal", name.clone()),
        EntryKind::Retry { .. } => ("retry", String::new()),
        EntryKind::Fault { name, .. } => ("fault", name.clone()),
        EntryKind::Reloaded { .. } => ("reloaded", String::new()),
        EntryKind::Resumed { .. } => ("resumed", String::new()),
        EntryKind::Warning { .. } => ("warning", String::new()),
        EntryKind::Finished => ("finished", String::new()),
    }
}

/// Compares two entries with the same key. Returns the differing fields, or the words of differing texts.
fn compare(
    (left, left_request): (&Entry, Option<&RequestTimeline>),
    (right, right_request): (&Entry, Option<&RequestTimeline>),
    deadline: Instant,
) -> (Vec<Field>, Vec<(Side, String)>) {
    match (&left.kind, &right.kind) {
        (EntryKind::Text(left), EntryKind::Text(right))
        | (EntryKind::Reasoning(left), EntryKind::Reasoning(right)) => {
            (Vec::new(), words(&left.text, &right.text, deadline))
        }
        (left, right) => {
            let [left, right] = [(left, left_request), (right, right_request)]
                .map(|(kind, request)| comparable(kind, request));
            (differences(&left, &right).into_iter().map(Field::from).collect(), Vec::new())
        }
    }
}

/// Returns the parts of an entry that are compared.
fn comparable(kind: &EntryKind, request: Option<&RequestTimeline>) -> Value {
    match kind {
        EntryKind::Turn(turn) => {
            let messages: Vec<Value> = turn.messages.iter().cloned().map(without_variables).collect();
            json!({
                "status": turn.status,
                "budget": turn.budget,
                "finish_reason": turn.finish_reason,
                "usage": turn.usage,
                "messages": messages,
                "tools": turn.tools,
                "settings": turn.settings,
            })
        }
        EntryKind::Call(call) => json!({
            "state": call.state,
            "arguments": call.arguments,
            "repairs": call.repairs,
            "result": call.result,
            "error": call.error,
        }),
        EntryKind::Approval { answer, .. } => json!(answer),
        EntryKind::Signal { arguments, .. } => json!({ "arguments": arguments }),
        EntryKind::Retry { detail, .. } | EntryKind::Fault { detail, .. } => json!({ "detail": detail }),
        EntryKind::Reloaded { detail, .. } => json!({ "changes": detail }),
        EntryKind::Resumed { superseded } => json!({ "superseded": superseded }),
        EntryKind::Warning { message } => json!({ "message": message }),
        EntryKind::Finished => json!(request.map(|request| &request.outcome)),
        EntryKind::Text(_) | EntryKind::Reasoning(_) => Value::Null,
    }
}

/// Removes ids and the time of the BIOS from a message.
fn without_variables(mut message: Value) -> Value {
    match &mut message {
        Value::Object(members) => {
            members.retain(|name, _| !VARIABLE_MEMBERS.contains(&name.as_str()));
            for value in members.values_mut() {
                *value = without_variables(value.take());
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = without_variables(item.take());
            }
        }
        Value::String(text) if text.starts_with(BIOS_TIME) || text.contains(&format!("\n{BIOS_TIME}")) => {
            let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(BIOS_TIME)).collect();
            *text = lines.join("\n");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    message
}

/// Returns the words of two texts; empty if they are equal.
fn words(left: &str, right: &str, deadline: Instant) -> Vec<(Side, String)> {
    let mut words: Vec<(Side, String)> = Vec::new();
    if left == right {
        return words;
    }
    let diff = TextDiff::configure().deadline(deadline).diff_words(left, right);
    for change in diff.iter_all_changes() {
        let side = match change.tag() {
            ChangeTag::Equal => Side::Both,
            ChangeTag::Delete => Side::Left,
            ChangeTag::Insert => Side::Right,
        };
        match words.last_mut() {
            Some((last, text)) if *last == side => text.push_str(change.value()),
            _ => words.push((side, change.value().to_owned())),
        }
    }
    words
}

impl From<Difference> for Field {
    fn from(difference: Difference) -> Self {
        let Difference { path, change, recorded, now } = difference;
        match change {
            Change::More => {
                let path = format!("and {} more", now.unwrap_or_default());
                Self { path, left: None, right: None }
            }
            Change::Moved => Self { path: format!("{path} (position)"), left: recorded, right: now },
            Change::Changed | Change::Removed | Change::Added => Self { path, left: recorded, right: now },
        }
    }
}
