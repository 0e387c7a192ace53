//! Events → a timeline: those of `deftool run --json`, without times, or those of a journal.

use std::path::Path;

use deftool_chat::request::{Event, JournalEntry};
use deftool_lang::tool::AttachmentStore;
use deftool_process::files::open_regular;
use serde_json::Value;

use super::builder::Builder;
use super::model::{EntryKind, Place, RequestTimeline, Timeline, TimelineError, TimelineSource, json_of};
use crate::journal::JournaledRequest;
use crate::stored::{ReadLines, StoredFileError, StoredForm, read_lines};

/// Reads the events at `path`. Ignores events of unknown types and an incomplete last line.
pub(super) fn read(path: &Path) -> Result<Timeline, TimelineError> {
    let form = StoredForm::Events;
    let mut requests: Vec<Builder> = Vec::new();
    let file = open_regular(path).map_err(StoredFileError::io(form, path))?;
    let ReadLines { damage, .. } = read_lines(file, form, path, |number, line| {
        let value = serde_json::from_slice::<Value>(line)?;
        // Later versions may add types.
        let Ok(event) = serde_json::from_value::<Event>(value) else { return Ok(()) };
        if matches!(event, Event::Submitted { .. }) {
            requests.push(Builder::default());
        }
        let Some(request) = requests.last_mut() else {
            return Err("the first event must be `submitted`".into());
        };
        request.event(Place { at_ms: 0, line: number }, event);
        Ok(())
    })?;
    if requests.is_empty() {
        let reason = "no event of `deftool run --json`";
        let unknown = TimelineError::Unknown { path: path.to_owned(), reason };
        return Err(damage.map_or(unknown, TimelineError::from));
    }
    let requests = requests.into_iter().map(Builder::finish).collect();
    let damage = damage.iter().map(ToString::to_string).collect();
    Ok(Timeline { source: TimelineSource::Events, damage, requests })
}

impl Timeline {
    /// Returns the timeline of requests of a journal.
    pub fn of_journal(
        requests: impl IntoIterator<Item = (JournaledRequest, Vec<(u64, JournalEntry)>)>,
    ) -> Self {
        let requests = requests.into_iter().map(|(JournaledRequest { session, .. }, entries)| {
            let mut builder = Builder::of(RequestTimeline::of_session(&session));
            let mut attachments = AttachmentStore::default();
            for (index, (at_ms, entry)) in entries.into_iter().enumerate() {
                match entry {
                    JournalEntry::Event(event) => builder.event(Place { at_ms, line: index + 1 }, event),
                    JournalEntry::Log { call_id, log } => {
                        builder.with_call(&call_id, |call, _| call.logs.push(log));
                    }
                    JournalEntry::Attachment(data) => attachments.add(&data),
                    JournalEntry::Reply(_) => {}
                }
            }
            let mut request = builder.finish();
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
