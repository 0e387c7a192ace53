//! Events → a timeline: those of `deftool run --json`, without times, or those of a journal.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use deftool_chat::request::{Event, JournalEntry, Signal};
use deftool_lang::schema::Repair;
use deftool_lang::tool::AttachmentStore;
use deftool_process::files::open_regular;
use serde_json::Value;

use super::model::{
    BudgetLeft, CallEntry, CallState, Entry, EntryKind, Place, RequestTimeline, Timeline, TimelineError,
    TimelineSource, TurnEntry, json_of, number_turns, prompt_of, push_delta, short_outcome,
};
use crate::journal::JournaledRequest;
use crate::stored::{ReadLines, StoredFileError, StoredForm, read_lines};

/// Reads the events at `path`. Ignores events of unknown types and an incomplete last line.
pub(super) fn read(path: &Path) -> Result<Timeline, TimelineError> {
    let form = StoredForm::Events;
    let mut requests: Vec<RequestTimeline> = Vec::new();
    let mut places = Places::default();
    let file = open_regular(path).map_err(StoredFileError::io(form, path))?;
    let ReadLines { damage, .. } = read_lines(file, form, path, |number, line| {
        let value = serde_json::from_slice::<Value>(line)?;
        // Later versions may add types.
        let Ok(event) = serde_json::from_value::<Event>(value) else { return Ok(()) };
        if matches!(event, Event::Submitted { .. }) {
            places = Places::default();
            requests.push(RequestTimeline::default());
        }
        let Some(request) = requests.last_mut() else {
            return Err("the first event must be `submitted`".into());
        };
        add(request, &mut places, Place { at_ms: 0, line: number }, event);
        Ok(())
    })?;
    if requests.is_empty() {
        let reason = "no event of `deftool run --json`";
        let unknown = TimelineError::Unknown { path: path.to_owned(), reason };
        return Err(damage.map_or(unknown, TimelineError::from));
    }
    for request in &mut requests {
        number_turns(&mut request.entries);
    }
    let damage = damage.iter().map(ToString::to_string).collect();
    Ok(Timeline { source: TimelineSource::Events, damage, requests })
}

impl Timeline {
    /// Returns the timeline of requests of a journal.
    pub fn of_journal(
        requests: impl IntoIterator<Item = (JournaledRequest, Vec<(u64, JournalEntry)>)>,
    ) -> Self {
        let requests = requests.into_iter().map(|(JournaledRequest { session, .. }, entries)| {
            let mut request = RequestTimeline {
                prompt: prompt_of(&session.conversation).to_owned(),
                url: session.url,
                engine: session.engine,
                local_time: format!("{} ({})", session.local_time, session.zone),
                ..RequestTimeline::default()
            };
            let mut places = Places::default();
            let mut attachments = AttachmentStore::default();
            for (index, (at_ms, entry)) in entries.into_iter().enumerate() {
                match entry {
                    JournalEntry::Event(event) => {
                        add(&mut request, &mut places, Place { at_ms, line: index + 1 }, event);
                        request.end_ms = at_ms;
                    }
                    JournalEntry::Log { call_id, log } => {
                        with_call(&mut request.entries, &places, &call_id, |call, _| call.logs.push(log));
                    }
                    JournalEntry::Attachment(data) => attachments.add(&data),
                    JournalEntry::Reply(_) => {}
                }
            }
            number_turns(&mut request.entries);
            request.add_images(attachments.iter());
            // Events do not contain the messages of a turn. Those of the first turn are known.
            let first = request.entries.iter_mut().find_map(|entry| match &mut entry.kind {
                EntryKind::Turn(turn) => Some(turn),
                _ => None,
            });
            if let Some(turn) = first {
                turn.messages = session.conversation.iter().map(json_of).collect();
            }
            request
        });
        Self { source: TimelineSource::Journal, damage: Vec::new(), requests: requests.collect() }
    }
}

/// Indexes of the last entries, those of calls by id.
#[derive(Default)]
struct Places {
    turn: Option<usize>,
    /// The number of the last turn, and that of its attempt.
    turn_number: u32,
    attempt: u32,
    calls: HashMap<String, usize>,
    approvals: HashMap<String, usize>,
}

/// Appends an event, or adds it to the entry that it belongs to.
fn add(request: &mut RequestTimeline, places: &mut Places, place: Place, event: Event) {
    let at_ms = place.at_ms;
    if is_of_reply(&event)
        && let Some(Entry { kind: EntryKind::Turn(turn), end_ms, .. }) =
            places.turn.and_then(|index| request.entries.get_mut(index))
    {
        turn.first_ms.get_or_insert(at_ms);
        *end_ms = Some(at_ms);
    }
    let entries = &mut request.entries;
    let kind = match event {
        Event::Submitted { request_id, job_name, worker, model, submitted_at_ms, .. } => {
            (request.id, request.job, request.worker, request.model) = (request_id, job_name, worker, model);
            request.submitted_at_ms = submitted_at_ms;
            return;
        }
        Event::TurnStarted { turn, budget_left, .. } => {
            places.turn = Some(entries.len());
            // After the end of the process, an interrupted turn begins again.
            places.attempt = if places.turn_number == turn { places.attempt + 1 } else { 1 };
            places.turn_number = turn;
            let budget = Some(BudgetLeft { left: budget_left, unit: None });
            EntryKind::Turn(Box::new(TurnEntry { attempt: places.attempt, budget, ..TurnEntry::default() }))
        }
        Event::Text { text } => return push_delta(entries, EntryKind::Text, &text, place),
        Event::Reasoning { text } => return push_delta(entries, EntryKind::Reasoning, &text, place),
        Event::ToolCall { id, name, arguments } => {
            places.calls.insert(id.clone(), entries.len());
            let arguments = Arc::unwrap_or_clone(arguments);
            EntryKind::Call(Box::new(CallEntry { id, name, arguments, ..CallEntry::not_run() }))
        }
        Event::Approval { id, name, answer, .. } => {
            // The answer follows its request.
            let place = places.approvals.get(&id).and_then(|index| entries.get_mut(*index));
            if let Some(Entry { kind: EntryKind::Approval { answer: given, .. }, .. }) = place {
                *given = answer;
                return;
            }
            places.approvals.insert(id.clone(), entries.len());
            EntryKind::Approval { id, name, answer }
        }
        Event::ToolStarted { id, .. } => {
            return with_call(entries, places, &id, |call, _| {
                call.state = CallState::Abandoned;
                call.started_ms = Some(at_ms).filter(|at_ms| *at_ms > 0);
            });
        }
        Event::ToolFinished { id, ok, result, attachments, error, elapsed_ms, .. } => {
            return with_call(entries, places, &id, |call, end_ms| {
                let is_started = call.state == CallState::Abandoned;
                call.state = match (ok, is_started) {
                    (true, _) => CallState::Ok,
                    (false, true) => CallState::Failed,
                    (false, false) => CallState::NotRun,
                };
                call.result = result;
                call.attachments = attachments;
                call.error = error;
                *end_ms = is_started.then_some(at_ms.max(elapsed_ms));
            });
        }
        Event::Signal(Signal { tool_name, arguments, arguments_error, .. }) => {
            EntryKind::Signal { name: tool_name, arguments, arguments_error }
        }
        Event::Budget { left, unit } => EntryKind::Budget(BudgetLeft { left, unit: Some(unit) }),
        Event::Retry { attempt, detail, .. } => EntryKind::Retry { attempt, detail },
        Event::Reloaded { generation, detail } => EntryKind::Reloaded { generation, detail },
        Event::Resumed { superseded } => EntryKind::Resumed { superseded },
        Event::ArgumentsRepaired { id, path, kind, .. } => {
            return with_call(entries, places, &id.unwrap_or_default(), |call, _| {
                call.repairs.push(Repair { path, kind }.to_string());
            });
        }
        Event::Warning { message } => EntryKind::Warning { message },
        Event::Finished(outcome) => {
            request.outcome = short_outcome(&serde_json::to_value(outcome).unwrap_or_default());
            EntryKind::Finished
        }
        // An event of a later version.
        _ => return,
    };
    request.entries.push(Entry::new(place, None, kind));
}

/// Whether the event is a part of a reply.
fn is_of_reply(event: &Event) -> bool {
    matches!(event, Event::Text { .. } | Event::Reasoning { .. } | Event::ToolCall { .. } | Event::Signal(_))
}

/// Updates the call with this id, and its end.
fn with_call(
    entries: &mut [Entry],
    places: &Places,
    id: &str,
    update: impl FnOnce(&mut CallEntry, &mut Option<u64>),
) {
    let place = places.calls.get(id).and_then(|index| entries.get_mut(*index));
    if let Some(Entry { kind: EntryKind::Call(call), end_ms, .. }) = place {
        update(call, end_ms);
    }
}
