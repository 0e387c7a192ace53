//! The calls of a recorded request: the calls that the model wrote, joined with the records of their execution.

use std::collections::HashMap;

use deftool_chat::request::Approval;
use deftool_lang::tool::{Attachment, ToolError};
use serde_json::Value;

use super::model::{CallEntry, CallState, Entry, EntryKind, Place};
use super::reply::WrittenCall;
use crate::compare::{Change, Difference, differences};

/// The calls of one request.
#[derive(Debug)]
pub(super) struct Calls {
    /// Recorded signals that are not yet entries.
    signals: Vec<Value>,
    /// Calls of the last reply that were neither executed nor signals, so far.
    written: Vec<WrittenCall>,
    /// Calls of the last reply that were approved, refused or started.
    open: Vec<PlacedCall>,
    /// Index in `open` by id and name.
    by_id: HashMap<(String, String), usize>,
}

/// A call and its place in the timeline.
#[derive(Debug)]
struct PlacedCall {
    /// Position in the reply; calls that were written as text are last.
    index: usize,
    place: Place,
    end_ms: Option<u64>,
    call: CallEntry,
}

impl Calls {
    pub(super) fn new(signals: Vec<Value>) -> Self {
        Self { signals, written: Vec::new(), open: Vec::new(), by_id: HashMap::new() }
    }

    /// Takes the calls of a reply.
    pub(super) fn begin(&mut self, written: Vec<WrittenCall>) {
        self.written = written;
    }

    pub(super) fn started(&mut self, place: Place, id: &str, name: &str, arguments: Value) {
        let open = self.open(place, id, name, Some(&arguments));
        if !open.call.as_text {
            push_changes(&open.call.arguments, &arguments, &mut open.call.repairs);
        }
        open.call.arguments = arguments;
        open.call.arguments_error = None;
        open.call.started_ms = Some(place.at_ms);
        open.call.state = CallState::Abandoned;
    }

    pub(super) fn finished(
        &mut self,
        place: Place,
        id: &str,
        name: &str,
        result: Result<(Option<Value>, Vec<Attachment>), ToolError>,
    ) {
        let open = self.open(place, id, name, None);
        open.end_ms = Some(place.at_ms);
        match result {
            Ok((result, attachments)) => {
                open.call.state = CallState::Ok;
                (open.call.result, open.call.attachments) = (result, attachments);
            }
            Err(error) => {
                open.call.state = CallState::Failed;
                open.call.error = serde_json::to_value(error).ok();
            }
        }
    }

    pub(super) fn approval(&mut self, place: Place, id: &str, name: &str, answer: &Approval) {
        let open = self.open(place, id, name, None);
        if matches!(answer, Approval::Refused { .. }) {
            open.call.state = CallState::Refused;
        }
    }

    /// Ends a turn: returns all its calls and signals, in the order of the reply.
    pub(super) fn end_turn(&mut self) -> Vec<Entry> {
        let mut entries: Vec<(usize, Entry)> = Vec::new();
        for written in std::mem::take(&mut self.written) {
            let is_it =
                |signal: &Value| signal.get("tool_name").and_then(Value::as_str) == Some(&written.name);
            match self.signals.iter().position(is_it) {
                Some(at) => {
                    let entry = signal_entry(&self.signals.remove(at), written.place);
                    entries.push((written.index, entry));
                }
                None => self.open.push(PlacedCall::of(written)),
            }
        }
        for PlacedCall { index, place, end_ms, call } in std::mem::take(&mut self.open) {
            entries.push((index, Entry::new(place, end_ms, EntryKind::Call(Box::new(call)))));
        }
        self.by_id.clear();
        entries.sort_by_key(|(index, _)| *index);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    /// Ends the request: returns the signals that were written as text.
    pub(super) fn end(&mut self, place: Place) -> Vec<Entry> {
        let signals = std::mem::take(&mut self.signals);
        let at = |signal: &Value| {
            let at_ms = signal.get("emitted_at_ms").and_then(Value::as_u64).unwrap_or(place.at_ms);
            Place { at_ms, ..place }
        };
        signals.iter().map(|signal| signal_entry(signal, at(signal))).collect()
    }

    /// Returns the open call with this id. Otherwise opens the written call with the same arguments, or else the first
    /// written call of the tool. If there is none, opens a call that was written as text.
    fn open(&mut self, place: Place, id: &str, name: &str, arguments: Option<&Value>) -> &mut PlacedCall {
        let index = *self.by_id.entry((id.to_owned(), name.to_owned())).or_insert_with(|| {
            let is_equal = |call: &WrittenCall| call.name == name && Some(&call.arguments) == arguments;
            let equal = self.written.iter().position(is_equal);
            let written = equal.or_else(|| self.written.iter().position(|call| call.name == name));
            let mut placed = match written {
                Some(index) => PlacedCall::of(self.written.remove(index)),
                None => PlacedCall::as_text(place, name),
            };
            id.clone_into(&mut placed.call.id);
            self.open.push(placed);
            self.open.len() - 1
        });
        // The index is in range.
        &mut self.open[index]
    }
}

/// Adds a line for each written value that the repaired arguments do not contain.
fn push_changes(written: &Value, repaired: &Value, lines: &mut Vec<String>) {
    for Difference { path, change, recorded, .. } in differences(written, repaired) {
        if let (Change::Changed | Change::Removed, Some(written)) = (change, recorded) {
            lines.push(format!(".{path}: written as {written}"));
        }
    }
}

impl PlacedCall {
    fn of(written: WrittenCall) -> Self {
        let WrittenCall { index, name, arguments, arguments_error, repairs, place, end_ms } = written;
        let call = CallEntry { name, arguments, arguments_error, repairs, ..CallEntry::not_run() };
        let call = CallEntry { written_ms: Some((place.at_ms, end_ms)), ..call };
        Self { index, place, end_ms: Some(end_ms), call }
    }

    fn as_text(place: Place, name: &str) -> Self {
        let call = CallEntry { name: name.to_owned(), as_text: true, ..CallEntry::not_run() };
        Self { index: usize::MAX, place, end_ms: None, call }
    }
}

impl CallEntry {
    /// Returns a call that was not run.
    pub(super) fn not_run() -> Self {
        Self {
            id: String::new(),
            name: String::new(),
            state: CallState::NotRun,
            arguments: Value::Null,
            arguments_error: None,
            repairs: Vec::new(),
            written_ms: None,
            as_text: false,
            started_ms: None,
            result: None,
            attachments: Vec::new(),
            error: None,
            logs: Vec::new(),
        }
    }
}

/// Returns the entry of a signal of an outcome.
fn signal_entry(signal: &Value, place: Place) -> Entry {
    let text = |member: &str| signal.get(member).and_then(Value::as_str).map(str::to_owned);
    let kind = EntryKind::Signal {
        name: text("tool_name").unwrap_or_default(),
        arguments: signal.get("arguments").cloned().unwrap_or_default(),
        arguments_error: text("arguments_error"),
    };
    let end_ms = signal.get("emitted_at_ms").and_then(Value::as_u64);
    let end_ms = end_ms.map(|end| end.max(place.at_ms));
    Entry::new(place, end_ms, kind)
}
