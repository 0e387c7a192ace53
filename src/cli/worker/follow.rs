//! One request, shown while it runs, and its questions asked.
//!
//! While a question stands, nothing else is shown: what happens meanwhile is told after it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

use super::managed::wait_until_ready;
use crate::cli::approve::{Approver, Asked};
use crate::cli::interrupt::{Signals, end_now};
use crate::cli::output::{is_writing, say, stdout_failed};
use crate::cli::script_log::ScriptLines;
use crate::cli::show::{Show, show_json};
use crate::cli::{CliError, Exit};
use crate::request::{Approval, Event, FailReason, Failure, FinalState, Outcome};
use crate::worker::{EventStream, NotReady, SubmitError, SubmitRequest, Worker, WorkerState};

/// How requests are followed.
pub(in crate::cli) struct Follower<'f> {
    pub(in crate::cli) worker: &'f Worker,
    /// Whether events are printed as JSON.
    pub(in crate::cli) json: bool,
    pub(in crate::cli) approver: &'f mut Approver,
    pub(in crate::cli) interrupts: &'f mut Interrupts,
}

/// How following a request ended.
pub(in crate::cli) enum Followed {
    /// With the request.
    Ended { id: String, outcome: Arc<Outcome> },
    /// Who asked twice does not want to wait for the first.
    Left,
    /// Interrupted before it was submitted.
    Unsent,
}

impl Followed {
    pub(in crate::cli) fn exit(&self) -> Exit {
        match self {
            Self::Ended { outcome, .. } => match outcome.state {
                FinalState::Completed => Exit::Clean,
                FinalState::Failed => Exit::Failed,
                FinalState::Canceled => Exit::Interrupted,
            },
            Self::Left | Self::Unsent => Exit::Interrupted,
        }
    }
}

/// Who has not heard an interrupt for this long, and writes, writes to a reader that stands still.
const DEAF: Duration = Duration::from_secs(1);

/// What is waited for.
enum Heard {
    Event(Option<Arc<Event>>),
    Answer(Option<String>),
    /// What a script logged.
    Logged(String),
    Interrupt,
}

/// A request that is followed.
struct Following {
    id: String,
    events: EventStream,
    show: Show,
    logged: ScriptLines,
    /// The question that stands.
    asked: Option<Asked>,
    /// Calls that are asked about after it, and what happened while it stood.
    held: VecDeque<Arc<Event>>,
    /// The text so far.
    text: String,
    is_canceled: bool,
    /// Its end came: nobody waits for answers any more.
    is_over: bool,
}

impl Follower<'_> {
    /// Submits and shows what happens, to the end; `seen` is told of each event when it comes. A managed server that is
    /// restarted is waited for. Ctrl-C cancels; what came is kept. With `--json` the last event is always `finished`.
    ///
    /// # Errors
    /// When the request is not taken.
    pub(in crate::cli) async fn follow(
        &mut self,
        submit: SubmitRequest,
        mut seen: impl FnMut(&str, &Event),
    ) -> Result<Followed, CliError> {
        let usage = |text: String| CliError::Usage(text);
        let id = match self.submit(submit).await {
            Ok(Some(id)) => id,
            Ok(None) => {
                self.finish(Outcome::without_reply(None));
                return Ok(Followed::Unsent);
            }
            Err(error) => {
                self.finish(Outcome::without_reply(Some(failure_of(&error))));
                return Err(usage(error.to_string()));
            }
        };
        let forgotten = || usage(String::from("the request is not remembered"));
        let events = self.worker.events(&id, 0).ok_or_else(forgotten)?;
        let mut following = Following {
            id,
            events,
            show: Show::new(),
            logged: ScriptLines::follow(),
            asked: None,
            held: VecDeque::new(),
            text: String::new(),
            is_canceled: false,
            is_over: false,
        };
        loop {
            match following.next(self.interrupts).await {
                Heard::Event(Some(event)) => {
                    seen(&following.id, &event);
                    self.take_event(&mut following, event);
                }
                Heard::Event(None) => break,
                Heard::Answer(line) => self.take_answer(&mut following, line.as_deref()),
                Heard::Logged(line) => say(&line),
                Heard::Interrupt => {
                    if following.is_canceled {
                        // Nobody waits for its own.
                        if !following.is_over {
                            let text = std::mem::take(&mut following.text);
                            self.finish(Outcome { text, ..Outcome::without_reply(None) });
                        }
                        return Ok(Followed::Left);
                    }
                    self.cancel(&mut following);
                }
            }
            // Nobody reads on, or nothing more can be kept: the model need not go on either.
            if stdout_failed() && !following.is_canceled {
                self.cancel(&mut following);
            }
        }
        match self.worker.result(&following.id) {
            Ok(outcome) => Ok(Followed::Ended { id: following.id, outcome }),
            Err(_) => Err(forgotten()),
        }
    }

    /// Submits, once a managed server that is restarted is ready again. `None`: interrupted before that.
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

    /// Prints the `finished` event of a request that has none.
    fn finish(&self, outcome: Outcome) {
        if self.json {
            show_json(&Event::Finished(outcome));
        }
    }

    fn cancel(&mut self, following: &mut Following) {
        following.is_canceled = true;
        self.worker.cancel(&following.id);
        self.take_back(following);
        self.show_held(following);
    }

    /// The question is answered by something else.
    fn take_back(&mut self, following: &mut Following) {
        if let Some(asked) = following.asked.take() {
            self.approver.take_back(asked);
        }
    }

    fn take_event(&mut self, following: &mut Following, event: Arc<Event>) {
        match &*event {
            Event::Finished(_) => following.is_over = true,
            Event::Text { text } => following.text.push_str(text),
            _ => {}
        }
        following.held.push_back(event);
        if following.is_over {
            self.take_back(following);
        }
        self.show_held(following);
    }

    fn take_answer(&mut self, following: &mut Following, line: Option<&str>) {
        let Some(mut asked) = following.asked.take() else { return };
        match self.approver.take(&mut asked, line) {
            None => following.asked = Some(asked),
            Some(approval) => {
                self.worker.approve(&following.id, &asked.call_id, approval);
                self.show_held(following);
            }
        }
    }

    /// What happened while a question stood, up to the next question.
    fn show_held(&mut self, following: &mut Following) {
        while following.asked.is_none() {
            let Some(event) = following.held.pop_front() else { break };
            self.show(following, &event);
        }
    }

    fn show(&mut self, following: &mut Following, event: &Event) {
        if matches!(event, Event::ToolFinished { .. } | Event::Finished(_)) {
            following.logged.say_waiting();
        }
        if self.json {
            show_json(event);
        } else {
            following.show.event(event);
        }
        match event {
            Event::Approval { id, name, arguments, answer: None }
                if !following.is_canceled && !following.is_over =>
            {
                following.show.make_room();
                match self.approver.ask(id, name, arguments.as_ref(), self.worker.generation()) {
                    Ok(asked) => following.asked = Some(asked),
                    // Where the worker has the answer itself, nobody waits for this one.
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

/// Why a request that was not submitted failed.
fn failure_of(error: &SubmitError) -> Failure {
    let reason = match error {
        SubmitError::WorkerNotReady(_) => FailReason::ServerDied,
        _ => FailReason::UnknownError,
    };
    Failure::new(reason, "", error.to_string())
}

impl Following {
    async fn next(&mut self, interrupts: &mut Interrupts) -> Heard {
        let Self { asked, events, logged, .. } = self;
        let is_asked = asked.is_some();
        let answer = async {
            match asked {
                Some(asked) => asked.line().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // What came before a line was logged is shown before it.
            biased;
            () = interrupts.next() => Heard::Interrupt,
            event = events.next() => Heard::Event(event),
            line = answer => Heard::Answer(line),
            line = logged.next(), if !is_asked => Heard::Logged(line),
        }
    }
}

/// Ctrl-C and its like, from the first moment on: none is lost while something else is waited for.
pub(in crate::cli) struct Interrupts(tokio::sync::mpsc::Receiver<()>);

impl Interrupts {
    pub(in crate::cli) fn listen() -> std::io::Result<Self> {
        let (heard, receiver) = tokio::sync::mpsc::channel(2);
        let mut signals = Signals::listen()?;
        tokio::spawn(async move {
            let mut look = Instant::now();
            loop {
                let is_waiting = heard.capacity() < heard.max_capacity();
                tokio::select! {
                    () = signals.next() => {
                        if !is_waiting {
                            look = Instant::now() + DEAF;
                        }
                        // Two wait already: a third says nothing more.
                        if let Err(TrySendError::Closed(())) = heard.try_send(()) {
                            break;
                        }
                    }
                    () = tokio::time::sleep_until(look), if is_waiting => {
                        if is_writing() {
                            end_now();
                        }
                        look = Instant::now() + DEAF;
                    }
                }
            }
        });
        Ok(Self(receiver))
    }

    /// Forgets those that were meant for something that is over.
    pub(in crate::cli) fn drain(&mut self) {
        while self.0.try_recv().is_ok() {}
    }

    pub(in crate::cli) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
