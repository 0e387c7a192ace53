//! Restores a request from its journal, which contains its events and the state that the events lack. `resume`
//! continues it.
//!
//! A journal receives each event when it is published, and the [`ReplyState`] of a reply before the events of its end.
//! Both belong to one transaction. A turn without an end was interrupted and is repeated.

use std::sync::Arc;

use deftool_lang::spec::OnFailure;
use deftool_lang::tool::{AttachmentData, AttachmentStore, ToolError, ToolErrorKind, ToolOutput};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::batch::{Batch, BatchCall, CallState, Task};
use super::model::Budget;
use super::resume::RestoredRun;
use super::state::{Phase, PlannedCall, ReplyState, Run};
use crate::request::config::{RunConfig, RunStart};
use crate::request::event::Event;

/// An entry of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum JournalEntry {
    /// An event. Consecutive deltas of text may be merged.
    Event(Event),
    /// The state after a reply. The events of its end follow.
    Reply(ReplyState),
    /// A log line of the script of a call. It does not affect the request.
    Log {
        /// The call.
        call_id: String,
        /// The level and the text.
        log: String,
    },
    /// The bytes of an image or audio, once in a journal of a request, before the event that names them.
    Attachment(AttachmentData),
}

/// An error: an entry does not match the entries before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {number} of the journal does not match the entries before it: {detail}")]
pub struct RestoreError {
    /// The number of the entry, starting at 1.
    pub number: usize,
    /// The mismatch.
    pub detail: String,
}

impl Run {
    /// Returns the state after a reply, once. The events of its end are those that
    /// [`take_events`](Run::take_events) returns next.
    pub fn take_reply_state(&mut self) -> Option<ReplyState> {
        self.reply_state.take()
    }

    /// Restores a request from the entries of its journal, each with its time. `config` and `start` are the stored ones:
    /// they explain what happened.
    ///
    /// # Errors
    /// If the entries are not those of one request.
    pub fn restore(
        config: RunConfig,
        start: RunStart,
        entries: impl IntoIterator<Item = (u64, JournalEntry)>,
    ) -> Result<RestoredRun, RestoreError> {
        let mut run = Self::new(config, start);
        run.events.clear();
        let mut replay = JournalReplay {
            run,
            reply: None,
            events: Vec::new(),
            turn_start: 0,
            answered: 0,
            attachments: AttachmentStore::default(),
        };
        for (index, (at_ms, entry)) in entries.into_iter().enumerate() {
            replay.apply(at_ms, entry).map_err(|detail| RestoreError { number: index + 1, detail })?;
        }
        let superseded = replay.interrupt();
        let JournalReplay { mut run, mut events, answered, attachments, .. } = replay;
        run.restore_attachments(&attachments);
        for event in &mut events {
            if let Event::ToolFinished { attachments: known, .. } = event {
                attachments.restore(known);
            }
        }
        Ok(RestoredRun { run, events, superseded, answered })
    }

    /// Restores the bytes of images and audio. Those that were not stored stay lines of text.
    fn restore_attachments(&mut self, store: &AttachmentStore) {
        for message in self.conversation.iter_mut().filter(|message| !message.attachments().is_empty()) {
            store.restore(Arc::make_mut(message).attachments_mut());
        }
        let Phase::Calling(batch) = &mut self.phase else { return };
        for call in &mut batch.calls {
            if let CallState::Answered { attachments, .. } = &mut call.state {
                store.restore(attachments);
            }
        }
    }

    /// Drops a turn whose reply is not complete, and returns its text.
    fn drop_turn(&mut self) -> String {
        self.phase = Phase::Ready;
        self.turn = self.turn.saturating_sub(1);
        let superseded = self.text.split_off(self.turn_text_start);
        self.text_chars -= superseded.chars().count();
        self.reasoning.truncate(self.turn_reasoning_start);
        superseded
    }

    /// Returns what the events of a reply with the calls of `batch` do not contain.
    pub(super) fn state_after_reply(&self, batch: &Batch) -> ReplyState {
        let raw_text = self.raw_text.since(self.turn_raw_start, &self.text);
        let shown = self.text.get(self.turn_text_start..).unwrap_or_default();
        let plan = |call: &BatchCall| match &call.task {
            Task::Run { plan, .. } => PlannedCall::Run(*plan),
            Task::Report { error, .. } => {
                PlannedCall::Report { detail: error.message.clone(), kind: error.kind }
            }
        };
        ReplyState {
            usage: self.usage,
            first_token_ms: self.first_token_ms,
            ids: self.ids.state(),
            raw_text: (raw_text != shown).then_some(raw_text),
            affordable: batch.affordable,
            calls: batch.calls.iter().map(plan).collect(),
            written: if batch.calls.iter().any(|call| call.written.is_some()) {
                batch.calls.iter().map(|call| call.written.clone()).collect()
            } else {
                Vec::new()
            },
            received: self.received(),
            is_empty: false,
        }
    }
}

/// A request that is being restored.
struct JournalReplay {
    run: Run,
    /// The state of the reply whose events follow.
    reply: Option<ReplyState>,
    events: Vec<Event>,
    /// The number of events before the current turn.
    turn_start: usize,
    /// The number of answered calls.
    answered: u32,
    attachments: AttachmentStore,
}

impl JournalReplay {
    fn apply(&mut self, at_ms: u64, entry: JournalEntry) -> Result<(), String> {
        match entry {
            JournalEntry::Log { .. } => {}
            JournalEntry::Attachment(data) => self.attachments.add(&data),
            JournalEntry::Reply(mut reply) => {
                self.run.advance_time(at_ms);
                self.run.received = reply.received.take().unwrap_or_default();
                self.reply = Some(reply);
            }
            JournalEntry::Event(event) => {
                self.run.advance_time(at_ms);
                match event {
                    Event::TurnStarted { .. } => {
                        self.end_without_calls();
                        self.turn_start = self.events.len();
                    }
                    Event::Resumed { .. } => drop(self.interrupt()),
                    _ => {}
                }
                self.events.push(event.clone());
                self.apply_event(event)?;
            }
        }
        Ok(())
    }

    /// Ends a turn whose complete reply has no calls: the server paused it, or it is empty.
    fn end_without_calls(&mut self) {
        let Some(reply) = &self.reply else { return };
        if !reply.calls.is_empty() || !matches!(self.run.phase, Phase::Streaming) {
            return;
        }
        let is_empty = reply.is_empty;
        self.begin_batch();
        if is_empty {
            self.run.phase = Phase::Ready;
            self.run.was_empty = true;
        } else {
            self.run.complete_batch();
        }
        self.reply = None;
    }

    /// Drops a turn whose reply is not complete. Returns its text.
    fn interrupt(&mut self) -> String {
        self.end_without_calls();
        let is_incomplete = matches!(self.run.phase, Phase::Streaming);
        if is_incomplete {
            self.events.truncate(self.turn_start);
            self.run.drop_turn()
        } else {
            String::new()
        }
    }

    fn apply_event(&mut self, event: Event) -> Result<(), String> {
        let run = &mut self.run;
        match event {
            Event::Submitted { request_id, .. } if request_id != run.start.request_id => {
                return Err(format!("it belongs to the request {request_id}"));
            }
            Event::TurnStarted { turn, tools, .. } => {
                if !matches!(run.phase, Phase::Ready) {
                    return Err(format!("turn {turn} begins before the previous one ends"));
                }
                if run.turn.checked_add(1) != Some(turn) {
                    return Err(format!("turn {turn} follows turn {}", run.turn));
                }
                run.turn = turn;
                run.start_turn(tools.into());
                run.phase = Phase::Streaming;
            }
            Event::Text { text } => {
                run.first_token_ms.get_or_insert(run.at_ms);
                run.text_chars += text.chars().count();
                run.text.push_str(&text);
            }
            Event::Reasoning { text } => {
                run.first_token_ms.get_or_insert(run.at_ms);
                run.reasoning.push_str(&text);
            }
            Event::Signal(signal) => run.signals.push(signal),
            Event::Budget { left, unit } => run.budget = Budget::new(unit, left),
            Event::ToolCall { id, name, arguments } => self.add_call(id, name, arguments)?,
            Event::Approval { id, answer: None, .. } => *self.state_of(&id)? = CallState::Asked,
            Event::Approval { .. } => {}
            Event::ToolStarted { id, .. } => {
                let since_ms = run.at_ms;
                *self.state_of(&id)? = CallState::Running { since_ms };
            }
            Event::ToolFinished { id, result, attachments, error, .. } => {
                let result = match error {
                    Some(error) => Err(serde_json::from_value(error).map_err(|error| error.to_string())?),
                    None => Ok(ToolOutput { value: result.unwrap_or_default(), attachments }),
                };
                self.finish_call(&id, result)?;
            }
            Event::Finished(outcome) => {
                run.usage = outcome.usage;
                run.first_token_ms = outcome.first_token_ms;
                run.complete_conversation(outcome.state);
                run.outcome = Some(outcome);
            }
            Event::Submitted { .. }
            | Event::ArgumentsRepaired { .. }
            | Event::Retry { .. }
            | Event::Reloaded { .. }
            | Event::Resumed { .. }
            | Event::Warning { .. } => {}
        }
        Ok(())
    }

    /// Restores the state after a reply, before its calls.
    fn begin_batch(&mut self) {
        let run = &mut self.run;
        let Some(reply) = &self.reply else { return };
        let ReplyState { usage, first_token_ms, ids, raw_text, affordable, .. } = reply;
        run.usage = *usage;
        run.first_token_ms = *first_token_ms;
        run.ids.set_state(*ids);
        let shown = run.text.get(run.turn_text_start..).unwrap_or_default();
        run.raw_text.push(raw_text.as_deref().unwrap_or(shown), run.turn_text_start, shown);
        run.raw_text.note_shown(run.turn_text_start, shown);
        run.phase = Phase::Calling(Batch { calls: Vec::new(), affordable: *affordable });
    }

    fn add_call(&mut self, id: String, name: String, arguments: Arc<Value>) -> Result<(), String> {
        if !matches!(self.run.phase, Phase::Calling(_)) {
            self.begin_batch();
        }
        let run = &mut self.run;
        let (Phase::Calling(batch), Some(reply)) = (&mut run.phase, &self.reply) else {
            return Err(format!("the state of the reply with the call {id} is missing"));
        };
        let unexpected = || format!("unexpected call {id}");
        let task = match reply.calls.get(batch.calls.len()).ok_or_else(unexpected)? {
            PlannedCall::Run(plan) => {
                Task::Run { arguments: arguments.try_into().map_err(|_| unexpected())?, plan: *plan }
            }
            PlannedCall::Report { detail, kind } => {
                Task::Report { arguments, error: ToolError::new(*kind, detail) }
            }
        };
        let written = reply.written.get(batch.calls.len()).cloned().flatten();
        run.ids.reserve(&id);
        batch.calls.push(BatchCall {
            id,
            name,
            task,
            written,
            state: CallState::Waiting,
            was_interrupted: false,
        });
        Ok(())
    }

    /// Answers a call. After the last one, the next turn can begin.
    fn finish_call(&mut self, id: &str, result: Result<ToolOutput, ToolError>) -> Result<(), String> {
        self.state_of(id)?;
        let run = &mut self.run;
        let Phase::Calling(batch) = &mut run.phase else { return Ok(()) };
        let Some(index) = batch.position(id) else { return Ok(()) };
        let Some(call) = batch.calls.get(index) else { return Ok(()) };
        match &result {
            Err(error)
                if run.config.on_tool_error == OnFailure::Fail
                    && matches!(call.task, Task::Run { .. })
                    && !error.kind.is_result()
                    && error.kind != ToolErrorKind::Interrupted =>
            {
                batch.fail_call(index, error);
            }
            Ok(_) | Err(_) => {
                run.failures.answer(batch, index, result, (run.turn, &run.config));
                self.answered = self.answered.saturating_add(1);
            }
        }
        if batch.calls.iter().all(|call| matches!(call.state, CallState::Answered { .. })) {
            run.complete_batch();
        }
        Ok(())
    }

    fn state_of(&mut self, id: &str) -> Result<&mut CallState, String> {
        let Phase::Calling(batch) = &mut self.run.phase else { return Err(format!("no call {id} is open")) };
        let call = batch.calls.iter_mut().find(|call| call.id == id);
        call.map(|call| &mut call.state).ok_or_else(|| format!("unknown call {id}"))
    }
}
