//! Events → the timeline of a request.

use std::collections::HashMap;
use std::sync::Arc;

use deftool_chat::request::{Approval, Event, FinalState, Outcome, Signal};
use deftool_lang::schema::Repair;
use serde_json::Value;

use super::model::{
    BudgetLeft, CallEntry, CallState, Entry, EntryKind, Place, RequestTimeline, TurnEntry, number_turns,
    push_delta, short_outcome,
};
use super::reply::WrittenCall;

/// The timeline of a request so far.
#[derive(Debug, Default)]
pub(super) struct Builder {
    pub(super) request: RequestTimeline,
    /// Whether the replies are known, too: their turns, texts and calls come from there.
    has_replies: bool,
    /// Index of the entry of the last turn.
    turn: Option<usize>,
    /// The number of the last turn, and that of its attempt.
    turn_number: u32,
    attempt: u32,
    /// Indexes of the entries of calls and approvals, by the id of the call.
    calls: HashMap<String, usize>,
    approvals: HashMap<String, usize>,
    /// The calls of the last reply that have no event so far.
    written: Vec<WrittenCall>,
    /// The names of exit calls since the last reply.
    signals: Vec<String>,
}

impl Builder {
    /// Returns a builder of a request whose replies are known.
    pub(super) fn with_replies(request: RequestTimeline) -> Self {
        Self { request, has_replies: true, ..Self::default() }
    }

    pub(super) fn of(request: RequestTimeline) -> Self {
        Self { request, ..Self::default() }
    }

    pub(super) fn push(&mut self, place: Place, kind: EntryKind) {
        self.request.entries.push(Entry::new(place, None, kind));
    }

    pub(super) fn fault(&mut self, place: Place, name: &str, detail: String) {
        self.push(place, EntryKind::Fault { name: name.to_owned(), detail });
    }

    /// Takes the calls of a reply, before their events.
    pub(super) fn begin_calls(&mut self, written: Vec<WrittenCall>) {
        self.written = written;
    }

    /// Adds the calls of the last reply that have no event.
    pub(super) fn end_calls(&mut self) {
        let signals = std::mem::take(&mut self.signals);
        for name in signals {
            let index = self.position_of(&name, None);
            index.map(|index| self.written.remove(index));
        }
        for call in std::mem::take(&mut self.written) {
            let WrittenCall { name, arguments, arguments_error, place, end_ms } = call;
            let call = CallEntry { name, arguments, arguments_error, ..CallEntry::not_run() };
            let call = CallEntry { written_ms: Some((place.at_ms, end_ms)), ..call };
            self.request.entries.push(Entry::new(place, Some(end_ms), EntryKind::Call(Box::new(call))));
        }
    }

    /// Appends an event, or adds it to the entry that it belongs to.
    pub(super) fn event(&mut self, place: Place, event: Event) {
        let at_ms = place.at_ms;
        if is_of_reply(&event)
            && let Some(Entry { kind: EntryKind::Turn(turn), end_ms, .. }) =
                self.turn.and_then(|index| self.request.entries.get_mut(index))
        {
            turn.first_ms.get_or_insert(at_ms);
            *end_ms = Some(at_ms);
        }
        let entries = &mut self.request.entries;
        match event {
            Event::Submitted { request_id, job_name, worker, model, submitted_at_ms, .. } => {
                let request = &mut self.request;
                (request.id, request.job, request.worker, request.model) =
                    (request_id, job_name, worker, model);
                request.submitted_at_ms = submitted_at_ms;
            }
            Event::TurnStarted { turn, budget_left, .. } => self.turn_started(place, turn, budget_left),
            Event::Text { text } if !self.has_replies => push_delta(entries, EntryKind::Text, &text, place),
            Event::Reasoning { text } if !self.has_replies => {
                push_delta(entries, EntryKind::Reasoning, &text, place);
            }
            Event::ToolCall { id, name, arguments } => {
                self.call(place, id, name, Arc::unwrap_or_clone(arguments));
            }
            Event::Approval { id, name, answer, .. } => self.approval(place, id, name, answer),
            Event::ToolStarted { id, .. } => self.with_call(&id, |call, _| {
                call.state = CallState::Abandoned;
                call.started_ms = Some(at_ms).filter(|at_ms| *at_ms > 0);
            }),
            Event::ToolFinished { id, ok, result, attachments, error, elapsed_ms, .. } => {
                self.request.add_images(&attachments);
                self.with_call(&id, |call, end_ms| {
                    if call.state == CallState::Abandoned {
                        *end_ms = Some(at_ms.max(elapsed_ms)).filter(|end_ms| *end_ms > 0);
                    }
                    call.state = match (ok, call.state) {
                        (_, CallState::Refused) => CallState::Refused,
                        (true, _) => CallState::Ok,
                        (false, CallState::Abandoned) => CallState::Failed,
                        (false, _) => CallState::NotRun,
                    };
                    (call.result, call.attachments, call.error) = (result, attachments, error);
                });
            }
            Event::Signal(Signal { tool_name, arguments, arguments_error, emitted_at_ms }) => {
                self.signals.push(tool_name.clone());
                // The event may follow at the end of the reply.
                let place = Place { at_ms: at_ms.min(emitted_at_ms), ..place };
                self.push(place, EntryKind::Signal { name: tool_name, arguments, arguments_error });
            }
            Event::Retry { attempt, delay_ms, detail } => {
                let end_ms = (at_ms > 0).then_some(at_ms.saturating_add(delay_ms));
                entries.push(Entry::new(place, end_ms, EntryKind::Retry { attempt, detail }));
            }
            Event::Reloaded { generation, detail } => {
                self.push(place, EntryKind::Reloaded { generation, detail });
            }
            Event::Resumed { superseded } => self.push(place, EntryKind::Resumed { superseded }),
            Event::ArgumentsRepaired { id, path, kind, .. } => {
                self.with_call(&id.unwrap_or_default(), |call, _| {
                    call.repairs.push(Repair { path, kind }.to_string());
                });
            }
            Event::Warning { message } => self.push(place, EntryKind::Warning { message }),
            Event::Finished(outcome) => self.finished(place, &outcome),
            // Text of a known reply, the budget, which each turn has, or an event of a later version.
            _ => {}
        }
    }

    fn turn_started(&mut self, place: Place, turn: u32, left: u32) {
        if self.has_replies {
            return;
        }
        self.turn = Some(self.request.entries.len());
        // After the end of the process, an interrupted turn begins again.
        self.attempt = if self.turn_number == turn { self.attempt + 1 } else { 1 };
        self.turn_number = turn;
        let budget = Some(BudgetLeft { left, unit: None });
        let turn = TurnEntry { attempt: self.attempt, budget, ..TurnEntry::default() };
        self.push(place, EntryKind::Turn(Box::new(turn)));
    }

    fn call(&mut self, place: Place, id: String, name: String, arguments: Value) {
        let index = self.position_of(&name, Some(&arguments));
        let written = index.map(|index| self.written.remove(index));
        let later = index.and_then(|index| self.written.get(index..)).unwrap_or_default();
        // The signal of a later call precedes, because the events of calls follow at the end of the reply.
        let is_later = |entry: &&Entry| match &entry.kind {
            EntryKind::Signal { name, .. } => later.iter().any(|call| call.name == *name),
            _ => false,
        };
        let entries = &mut self.request.entries;
        let at = entries.len() - entries.iter().rev().take_while(is_later).count();
        self.calls.insert(id.clone(), at);
        let as_text = self.has_replies && written.is_none();
        let call = CallEntry { id, name, arguments, as_text, ..CallEntry::not_run() };
        let entry = match written {
            None => Entry::new(place, None, EntryKind::Call(Box::new(call))),
            Some(WrittenCall { arguments_error, place, end_ms, .. }) => {
                let written_ms = Some((place.at_ms, end_ms));
                let call = CallEntry { arguments_error, written_ms, ..call };
                Entry::new(place, Some(end_ms), EntryKind::Call(Box::new(call)))
            }
        };
        self.request.entries.insert(at, entry);
    }

    /// Returns the index of the written call with these arguments, or else of the first one of the tool.
    fn position_of(&self, name: &str, arguments: Option<&Value>) -> Option<usize> {
        let is_equal = |call: &WrittenCall| call.name == name && Some(&call.arguments) == arguments;
        let equal = self.written.iter().position(is_equal);
        equal.or_else(|| self.written.iter().position(|call| call.name == name))
    }

    fn approval(&mut self, place: Place, id: String, name: String, answer: Option<Approval>) {
        if matches!(answer, Some(Approval::Refused { .. })) {
            self.with_call(&id, |call, _| call.state = CallState::Refused);
        }
        // The answer follows its request.
        let asked = self.approvals.get(&id).and_then(|index| self.request.entries.get_mut(*index));
        if let Some(Entry { kind: EntryKind::Approval { answer: given, .. }, end_ms, .. }) = asked {
            *given = answer;
            *end_ms = Some(place.at_ms).filter(|at_ms| *at_ms > 0);
            return;
        }
        self.approvals.insert(id.clone(), self.request.entries.len());
        self.push(place, EntryKind::Approval { id, name, answer });
    }

    /// Ends the wait for an attempt, which begins at `at_ms` or was given up. Without replies, the attempt may have begun
    /// before, after the planned delay.
    pub(super) fn end_retry(&mut self, at_ms: u64) {
        let entries = self.request.entries.iter_mut().rev();
        let mut since_turn = entries.take_while(|entry| !matches!(entry.kind, EntryKind::Turn(_)));
        let retry = since_turn.find(|entry| matches!(entry.kind, EntryKind::Retry { .. }));
        if let Some(Entry { at_ms: from_ms, end_ms: Some(end_ms), .. }) = retry {
            let end = if self.has_replies { at_ms } else { at_ms.min(*end_ms) };
            *end_ms = end.max(*from_ms);
        }
    }

    fn finished(&mut self, place: Place, outcome: &Outcome) {
        self.end_retry(place.at_ms);
        // A fault of the reply is its cause, unless a call failed after it.
        let ends_reply = |kind: &&EntryKind| match kind {
            EntryKind::Turn(_) => true,
            EntryKind::Call(call) => call.state != CallState::NotRun,
            _ => false,
        };
        let kinds = self.request.entries.iter().rev().map(|entry| &entry.kind);
        let has_fault =
            kinds.take_while(|kind| !ends_reply(kind)).any(|kind| matches!(kind, EntryKind::Fault { .. }));
        if outcome.state == FinalState::Failed && !has_fault {
            let reason = outcome.fail_reason.map(|reason| reason.to_string());
            let name = outcome.kind.clone().or(reason).unwrap_or_default();
            self.fault(place, &name, outcome.detail.clone().unwrap_or_default());
        }
        self.request.outcome = short_outcome(&serde_json::to_value(outcome).unwrap_or_default());
        self.push(place, EntryKind::Finished);
    }

    /// Updates the call with this id, and its end.
    pub(super) fn with_call(&mut self, id: &str, update: impl FnOnce(&mut CallEntry, &mut Option<u64>)) {
        let place = self.calls.get(id).and_then(|index| self.request.entries.get_mut(*index));
        if let Some(Entry { kind: EntryKind::Call(call), end_ms, .. }) = place {
            update(call, end_ms);
        }
    }

    /// Returns the timeline, with its entries in the order of their times.
    pub(super) fn finish(self) -> RequestTimeline {
        let mut request = self.request;
        request.entries.sort_by_key(|entry| entry.at_ms);
        number_turns(&mut request.entries);
        let has_times = request.entries.iter().any(|entry| entry.at_ms > 0);
        let ends = request.entries.iter().map(|entry| entry.end_ms.unwrap_or(entry.at_ms));
        request.end_ms = ends.max().filter(|_| has_times).unwrap_or_default();
        request
    }
}

/// Whether the event is a part of a reply.
fn is_of_reply(event: &Event) -> bool {
    matches!(event, Event::Text { .. } | Event::Reasoning { .. } | Event::ToolCall { .. } | Event::Signal(_))
}
