//! Follows a request: prints its events and shows its confirmation prompts.
//!
//! While a prompt is shown, events are queued and printed after it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::{Approval, Event, FailReason, Failure, FinalState, Outcome};
use deftool_worker::{EventStream, NotReady, PartialCall, SubmitError, SubmitRequest, Worker, WorkerState};

use super::approve::{Approver, PendingPrompt};
use super::managed::wait_until_ready;
use super::show::{EventPrinter, print_event_json};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::script_log::ScriptLines;
use crate::cli::terminal::interrupt::{Interrupts, is_by_user};
use crate::cli::terminal::output::{
    eprint_line, json_line, print_without_blocking, shown_text, shows_progress, stdout_failed,
    wait_for_stderr,
};

/// Maximum number of further events that are printed together with one.
const MAX_TOGETHER: usize = 1_000;
/// Interval at which the progress of a call that is being received is shown.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// The part of a request that is printed to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Printed {
    /// The text of the model.
    Text,
    /// The events as JSON.
    Events,
    /// Nothing: the command prints a result of its own.
    Nothing,
}

impl Printed {
    /// Returns what `--format` selects.
    pub(in crate::cli) fn of(is_json: bool) -> Self {
        if is_json { Self::Events } else { Self::Text }
    }
}

/// Follows requests of a worker.
pub(in crate::cli) struct Follower<'f> {
    pub(in crate::cli) worker: &'f Worker,
    pub(in crate::cli) printed: Printed,
    pub(in crate::cli) approver: &'f mut Approver,
    pub(in crate::cli) interrupts: &'f mut Interrupts,
}

/// The result of following a request.
pub(in crate::cli) enum FollowResult {
    /// The request ended.
    Ended { id: String, outcome: Arc<Outcome> },
    /// The user interrupted twice and does not wait for the end.
    Abandoned,
    /// Interrupted before the request was submitted.
    NotSubmitted,
}

impl FollowResult {
    pub(in crate::cli) fn exit(&self) -> Exit {
        match self {
            Self::Ended { outcome, .. } => match outcome.state {
                FinalState::Completed => Exit::Clean,
                FinalState::Failed => Exit::Failed,
                FinalState::Canceled => Exit::Interrupted,
            },
            Self::Abandoned | Self::NotSubmitted => Exit::Interrupted,
        }
    }
}

/// An input of the follow loop.
enum Incoming {
    Event(Option<Arc<Event>>),
    Answer(Option<String>),
    /// A log line of a script.
    Logged(String),
    /// The progress of a call that is being received.
    Progress(PartialCall),
    Interrupt,
}

/// The state of a followed request.
struct FollowedRequest {
    id: String,
    events: EventStream,
    printer: EventPrinter,
    logged: ScriptLines,
    /// The visible prompt.
    prompt: Option<PendingPrompt>,
    /// Events that arrived while the prompt was visible.
    queued: VecDeque<Arc<Event>>,
    /// The number of events that happened in another process and were not printed.
    past: usize,
    /// The text so far.
    text: String,
    is_canceled: bool,
    /// Whether the request ended. Answers to prompts then no longer have an effect.
    is_finished: bool,
}

impl Follower<'_> {
    /// Submits a request and prints its events until it ends. `on_event` is called for each event on arrival. Waits for
    /// a restart of a managed server. Ctrl-C cancels the request and keeps its text. With `--json`, the last event is
    /// always `finished`.
    ///
    /// # Errors
    /// If the worker does not accept the request.
    pub(in crate::cli) async fn follow(
        &mut self,
        submit: SubmitRequest,
        on_event: impl FnMut(&str, &Event),
    ) -> Result<FollowResult, CliError> {
        let logged = ScriptLines::subscribe(self.worker);
        let id = match self.submit(submit).await {
            Ok(Some(id)) => id,
            Ok(None) => {
                self.finish(Outcome::without_reply(None));
                return Ok(FollowResult::NotSubmitted);
            }
            Err(error) => {
                self.finish(Outcome::without_reply(Some(failure_of(&error))));
                return Err(CliError::Usage(error.to_string()));
            }
        };
        self.follow_until_end(id, 0, logged, on_event).await
    }

    /// Like [`follow`](Self::follow), for a request that the worker already has. `past` is the number of its events that
    /// are only printed, because they happened in another process.
    ///
    /// # Errors
    /// If the worker does not have the request.
    pub(in crate::cli) async fn follow_submitted(
        &mut self,
        id: String,
        past: usize,
    ) -> Result<FollowResult, CliError> {
        self.follow_until_end(id, past, ScriptLines::subscribe(self.worker), |_, _| {}).await
    }

    async fn follow_until_end(
        &mut self,
        id: String,
        past: usize,
        logged: ScriptLines,
        mut on_event: impl FnMut(&str, &Event),
    ) -> Result<FollowResult, CliError> {
        let unknown = || CliError::Usage(String::from("unknown request"));
        let events = self.worker.events(&id, 0).ok_or_else(unknown)?;
        let mut following = FollowedRequest {
            id,
            events,
            printer: EventPrinter::new(),
            logged,
            prompt: None,
            queued: VecDeque::new(),
            past,
            text: String::new(),
            is_canceled: false,
            is_finished: false,
        };
        let shows_calls = self.printed != Printed::Events && shows_progress();
        loop {
            match following.next(self.interrupts, shows_calls).await {
                Incoming::Event(Some(first)) => {
                    // Events that arrived together are printed together.
                    let more: Vec<_> =
                        std::iter::from_fn(|| following.events.try_next()).take(MAX_TOGETHER).collect();
                    for event in std::iter::once(first).chain(more) {
                        on_event(&following.id, &event);
                        self.take_event(&mut following, event);
                    }
                    self.show_queued(&mut following).await;
                }
                Incoming::Event(None) => break,
                Incoming::Answer(line) => self.take_answer(&mut following, line.as_deref()).await,
                Incoming::Logged(line) => {
                    wait_for_stderr().await;
                    eprint_line(&line);
                }
                Incoming::Progress(call) => following.printer.show_partial_call(&call),
                Incoming::Interrupt => {
                    if following.is_canceled {
                        // Print a `finished` event, because the real event is not awaited.
                        if !following.is_finished {
                            let text = std::mem::take(&mut following.text);
                            self.finish(Outcome { text, ..Outcome::without_reply(None) });
                        }
                        return Ok(FollowResult::Abandoned);
                    }
                    self.stop(&mut following, is_by_user()).await;
                }
            }
            // Stop the model if its output cannot be written.
            if stdout_failed() && !following.is_canceled {
                self.stop(&mut following, false).await;
            }
        }
        match self.worker.result(&following.id) {
            Ok(outcome) => Ok(FollowResult::Ended { id: following.id, outcome }),
            Err(_) => Err(unknown()),
        }
    }

    /// Submits the request after a restarting server is ready. Returns `None` if interrupted before that.
    async fn submit(&mut self, submit: SubmitRequest) -> Result<Option<String>, SubmitError> {
        loop {
            match self.worker.submit(submit.clone()) {
                Err(SubmitError::WorkerNotReady(NotReady { state: WorkerState::Running, .. })) => {}
                submitted => return submitted.map(Some),
            }
            tokio::select! {
                ready = wait_until_ready(self.worker) => ready.map_err(SubmitError::WorkerNotReady)?,
                () = self.interrupts.next() => return Ok(None),
            }
        }
    }

    /// Prints a `finished` event for a request that has none.
    fn finish(&self, outcome: Outcome) {
        if self.printed == Printed::Events {
            print_event_json(&Event::Finished(Arc::new(outcome)));
        }
    }

    /// Cancels the request for the user, or ends it with the process.
    async fn stop(&mut self, following: &mut FollowedRequest, is_by_user: bool) {
        following.is_canceled = true;
        if is_by_user {
            self.worker.cancel(&following.id);
        } else if self.worker.end(&following.id) {
            following.printer.suspend();
        }
        self.cancel_prompt(following);
        self.show_queued(following).await;
    }

    /// Cancels the visible prompt, because its answer is no longer needed.
    fn cancel_prompt(&mut self, following: &mut FollowedRequest) {
        if let Some(prompt) = following.prompt.take() {
            self.approver.cancel(prompt);
        }
    }

    fn take_event(&mut self, following: &mut FollowedRequest, event: Arc<Event>) {
        match &*event {
            Event::Finished(_) => following.is_finished = true,
            Event::Text { text } => following.text.push_str(text),
            _ => {}
        }
        following.queued.push_back(event);
        if following.is_finished {
            self.cancel_prompt(following);
        }
    }

    async fn take_answer(&mut self, following: &mut FollowedRequest, line: Option<&str>) {
        let Some(mut prompt) = following.prompt.take() else { return };
        match self.approver.handle_line(&mut prompt, line) {
            None => following.prompt = Some(prompt),
            Some(approval) => {
                self.worker.approve(&following.id, &prompt.call_id, approval);
                self.show_queued(following).await;
            }
        }
    }

    /// Prints the queued events, up to the next prompt. Adjacent deltas are written together.
    async fn show_queued(&mut self, following: &mut FollowedRequest) {
        let mut deltas = String::new();
        while following.prompt.is_none() {
            let Some(event) = following.queued.pop_front() else { break };
            let is_past = following.past > 0;
            following.past = following.past.saturating_sub(1);
            match &*event {
                Event::Text { .. } | Event::Reasoning { .. } if self.printed == Printed::Events => {
                    deltas += &json_line(&event);
                }
                Event::Text { text } if self.printed == Printed::Text => deltas += text,
                _ => {
                    self.print_deltas(following, std::mem::take(&mut deltas)).await;
                    self.show(following, &event, is_past).await;
                }
            }
        }
        self.print_deltas(following, deltas).await;
    }

    async fn print_deltas(&self, following: &mut FollowedRequest, deltas: String) {
        if deltas.is_empty() {
            return;
        }
        following.printer.stop_waiting();
        let text = if self.printed == Printed::Events { deltas } else { shown_text(deltas) };
        print_without_blocking(&text).await;
    }

    /// Prints an event, and shows a prompt if it requests an approval.
    async fn show(&mut self, following: &mut FollowedRequest, event: &Event, is_past: bool) {
        if matches!(event, Event::ToolFinished { .. } | Event::Finished(_)) {
            following.logged.print_queued().await;
        }
        wait_for_stderr().await;
        if self.printed == Printed::Events {
            print_event_json(event);
        } else {
            following.printer.print(event);
        }
        if is_past {
            return;
        }
        match event {
            Event::Approval { id, name, arguments, answer: None }
                if !following.is_canceled && !following.is_finished =>
            {
                following.printer.prepare_prompt();
                match self.approver.ask(id, name, arguments.as_deref(), self.worker.generation()) {
                    Ok(prompt) => following.prompt = Some(prompt),
                    // Has no effect if the worker already has an answer.
                    Err(approval) => {
                        self.worker.approve(&following.id, id, approval);
                    }
                }
            }
            Event::Approval { answer: Some(Approval::Refused { .. }), .. } => self.approver.note_refusal(),
            Event::Reloaded { .. } => self.approver.forget(),
            _ => {}
        }
    }
}

/// Returns the failure of a request that was not submitted.
fn failure_of(error: &SubmitError) -> Failure {
    let reason = match error {
        SubmitError::WorkerNotReady(_) => FailReason::ServerDied,
        _ => FailReason::UnknownError,
    };
    Failure::new(reason, "", error.to_string())
}

impl FollowedRequest {
    /// `shows_calls`: also returns the progress of a call that is being received, while no prompt is shown.
    async fn next(&mut self, interrupts: &mut Interrupts, shows_calls: bool) -> Incoming {
        loop {
            tokio::select! {
                biased;
                incoming = self.next_input(interrupts) => return incoming,
                () = tokio::time::sleep(PROGRESS_INTERVAL), if shows_calls => {}
            }
            if self.prompt.is_none()
                && let Some(call) = self.events.partial_call()
            {
                return Incoming::Progress(call);
            }
        }
    }

    async fn next_input(&mut self, interrupts: &mut Interrupts) -> Incoming {
        let Self { prompt, events, logged, .. } = self;
        let has_prompt = prompt.is_some();
        let answer = async {
            match prompt {
                Some(prompt) => prompt.line().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Print events before log lines, to keep their order.
            biased;
            () = interrupts.next() => Incoming::Interrupt,
            event = events.next() => Incoming::Event(event),
            line = answer => Incoming::Answer(line),
            line = logged.next(), if !has_prompt => Incoming::Logged(line),
        }
    }
}
