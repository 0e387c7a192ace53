//! The task that keeps a managed server: starts it, waits until it is ready, looks after it, starts it again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::Process;
use super::condition::{Condition, WorkerState};
use super::logs::Logs;
use super::look::{Asker, CONNECT, Look, Probe, Slots};
use super::options::ServerOptions;
use super::plan::{Ending, News};
use super::policy::{RestartPolicy, Verdict};
use super::port::{Whose, is_port_free, whose};
use super::pulse::Pulse;
use super::route::Route;
use crate::request::{FailReason, Failure};
use crate::script::processes::{is_dead, is_stopped};
use crate::worker::endpoint::Endpoint;
use crate::worker::http::HttpTransport;

/// The first wait between two looks at a server that starts; it grows by half.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const SLOWEST_LOOK: Duration = Duration::from_secs(1);
/// A good answer of whom is not known counts when our process is still alive after this: who lost its port ends.
const CONFIRM: Duration = Duration::from_millis(250);
/// How often a start is tried again at once, because its free port was taken meanwhile.
const MAX_RACES: u32 = 3;
/// How many of its last lines an error shows.
const SHOWN_LINES: usize = 8;

/// What the worker tells its keeper.
#[derive(Debug)]
pub(in crate::worker) enum Order {
    /// A person wants it anew, locked out or not.
    Restart,
    /// A request was disconnected because it stalled: its slot is to become idle.
    Stalled,
    /// A stream of this server broke. The answer is the loss of the server, or `None` once a later look shows that the
    /// server still runs.
    Verdict(oneshot::Sender<Option<Failure>>),
    /// The end.
    Stop,
}

/// The requests that hang on the server.
pub(in crate::worker) trait Dependents: Send + Sync {
    /// How many have an open stream.
    fn streaming(&self) -> usize;
    /// The server is lost to those.
    fn fail(&self, failure: &Failure);
}

/// What it keeps, and with what.
pub(in crate::worker) struct Keeper {
    pub(super) options: ServerOptions,
    pub(super) orders: mpsc::UnboundedReceiver<Order>,
    pub(super) condition: Arc<watch::Sender<Condition>>,
    pub(super) logs: Arc<Logs>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) route: Arc<Route>,
    pub(super) dependents: Box<dyn Dependents>,
    pub(super) policy: RestartPolicy,
    pub(super) phase: Phase,
    /// Whether it was ever ready since a person wanted it: what fails before that would fail again.
    pub(super) was_ready: bool,
    pub(super) races: u32,
    pub(super) began: Instant,
    /// The last loss of the server.
    pub(super) last_loss: Option<Failure>,
}

pub(super) enum Phase {
    /// Nothing runs; it is started then, or when a person says so.
    Down(Option<Instant>),
    Up(Box<Up>),
}

/// A server that runs.
pub(super) struct Up {
    process: Process,
    port: u16,
    asker: Asker,
    started: Instant,
    is_ready: bool,
    /// What it said last, while it starts.
    last_said: String,
    look: Option<BoxFuture<'static, Look>>,
    /// When the last look began.
    look_began: Instant,
    next_look: Instant,
    /// Pending [`Order::Verdict`]s, each with the earliest start of a look that decides it.
    verdicts: Vec<(Instant, oneshot::Sender<Option<Failure>>)>,
    /// While it starts: when a process of it was first seen stopped and none worked.
    stopped: Option<Instant>,
    /// Between two looks, while it starts.
    pace: Duration,
    is_confirming: bool,
    misses: u32,
    /// When it last was seen to work, as of the last look.
    worked: Option<Instant>,
    /// Until when the slot of a request that stalled may be busy.
    drain: Option<Instant>,
}

enum Event {
    /// `None`: the worker is gone.
    Order(Option<Order>),
    News(News),
    Looked(Look),
    Due,
}

impl Keeper {
    /// Keeps it until the worker stops or is gone.
    pub(in crate::worker) async fn keep(mut self) {
        self.start().await;
        loop {
            match self.next().await {
                Event::Order(None | Some(Order::Stop)) => {
                    self.take_down().await;
                    self.enter(WorkerState::Stopped, None);
                    return;
                }
                Event::Order(Some(Order::Restart)) => {
                    self.policy.forgive();
                    self.was_ready = false;
                    self.lose(FailReason::WorkerRestarted, "the worker was restarted");
                    self.take_down().await;
                    self.start_again().await;
                }
                Event::Order(Some(Order::Stalled)) => self.watch_slots(),
                Event::Order(Some(Order::Verdict(answer))) => self.judge(answer),
                Event::News(News::Started) => self.follow(),
                Event::News(News::Ended(ending)) => self.ended(ending).await,
                Event::Looked(look) => self.looked(look).await,
                Event::Due => self.due().await,
            }
        }
    }

    async fn next(&mut self) -> Event {
        match &mut self.phase {
            Phase::Down(until) => {
                let due = async {
                    match until {
                        Some(until) => sleep_until(*until).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    order = self.orders.recv() => Event::Order(order),
                    () = due => Event::Due,
                }
            }
            Phase::Up(up) => {
                let Up { process, look, next_look, .. } = &mut **up;
                let is_looking = look.is_some();
                let looked = async {
                    match look {
                        Some(look) => look.await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    order = self.orders.recv() => Event::Order(order),
                    // Before what somebody else at its port may have answered.
                    news = process.news() => Event::News(news),
                    look = looked => Event::Looked(look),
                    () = sleep_until(*next_look), if !is_looking => Event::Due,
                }
            }
        }
    }

    fn enter(&self, state: WorkerState, reason: Option<String>) {
        let reason = reason.map(|reason| self.options.without_secrets(&reason));
        self.condition.send_if_modified(|condition| condition.enter(state, reason));
    }

    /// The server is lost: nothing is sent to it any more, and whoever reads from it fails.
    fn lose(&mut self, reason: FailReason, detail: &str) {
        self.enter(WorkerState::Running, Some(detail.to_owned()));
        let failure = Failure::new(reason, "", detail);
        self.dependents.fail(&failure);
        if let Phase::Up(up) = &mut self.phase {
            for (_, answer) in up.verdicts.drain(..) {
                let _ = answer.send(Some(failure.clone()));
            }
        }
        self.last_loss = Some(failure);
    }

    /// A stream broke. The connection ends shortly before the process, and the guard reports the exit later still, so only a
    /// look that begins after [`CONFIRM`] shows that the server still runs. If the server is not ready, the server of the
    /// stream is already lost.
    fn judge(&mut self, answer: oneshot::Sender<Option<Failure>>) {
        match &mut self.phase {
            Phase::Up(up) if up.is_ready => {
                let from = Instant::now() + CONFIRM;
                up.verdicts.push((from, answer));
                up.next_look = up.next_look.min(from);
            }
            Phase::Up(_) | Phase::Down(_) => {
                let _ = answer.send(self.last_loss.clone());
            }
        }
    }

    async fn start(&mut self) {
        self.enter(WorkerState::Running, Some(format!("the server `{}` is starting", self.options.shown())));
        let begun = match self.options.plan() {
            Ok((plan, port)) => {
                let process = Process::start(&plan, &self.options.guard, Arc::clone(&self.logs)).await;
                process.and_then(|process| Ok((process, port, Asker::new(&self.options, port)?)))
            }
            Err(why) => Err(why),
        };
        match begun {
            Err(why) => self.give_up_or_try_again(&format!("the server `{}`: {why}", self.options.shown())),
            Ok((process, port, asker)) => {
                let now = Instant::now();
                self.phase = Phase::Up(Box::new(Up {
                    process,
                    port,
                    asker,
                    started: now,
                    is_ready: false,
                    last_said: String::from("nothing"),
                    look: None,
                    look_began: now,
                    next_look: now + FIRST_LOOK,
                    verdicts: Vec::new(),
                    stopped: None,
                    pace: FIRST_LOOK,
                    is_confirming: false,
                    misses: 0,
                    worked: None,
                    drain: None,
                }));
            }
        }
    }

    async fn start_again(&mut self) {
        self.condition.send_modify(|condition| condition.restarts += 1);
        self.start().await;
    }

    fn follow(&mut self) {
        let Phase::Up(up) = &self.phase else { return };
        let (pid, endpoint) = (up.process.id(), up.asker.base.clone());
        self.pulse.follow(pid);
        self.condition.send_modify(|condition| {
            condition.pid = pid;
            condition.endpoint = Some(endpoint);
        });
    }

    /// Ends what runs.
    async fn take_down(&mut self) -> Option<Ending> {
        let phase = std::mem::replace(&mut self.phase, Phase::Down(None));
        let ending = match phase {
            Phase::Up(up) => Some(up.process.stop().await),
            Phase::Down(_) => None,
        };
        self.forget();
        ending
    }

    fn forget(&self) {
        self.pulse.follow(None);
        self.condition.send_modify(|condition| {
            condition.pid = None;
            condition.endpoint = None;
        });
    }

    /// Nothing runs any more, for this reason: what was never ready has failed, what was is started again after a while.
    fn give_up_or_try_again(&mut self, why: &str) {
        if self.was_ready {
            return self.try_again(why);
        }
        self.phase = Phase::Down(None);
        self.forget();
        self.enter(WorkerState::Failed, Some(self.with_lines(why)));
    }

    /// No process runs, for the reason `why`: schedules a restart, unless there were too many.
    fn try_again(&mut self, why: &str) {
        self.phase = Phase::Down(None);
        self.forget();
        match self.policy.on_loss(self.began.elapsed(), fastrand::f64()) {
            Verdict::Again(delay) => {
                let seconds = delay.as_secs_f64();
                self.enter(
                    WorkerState::Running,
                    Some(format!("{why}; it is started again in {seconds:.1} s")),
                );
                self.phase = Phase::Down(Some(Instant::now() + delay));
            }
            Verdict::LockOut => {
                let limits = self.options.limits.restarts;
                let why = format!(
                    "{why}; after {} restarts within {} min it is not started again until the worker is restarted",
                    limits.max_restarts,
                    limits.window.as_secs() / 60
                );
                self.enter(WorkerState::Failed, Some(self.with_lines(&why)));
            }
        }
    }

    fn with_lines(&self, why: &str) -> String {
        let lines = self.logs.last(SHOWN_LINES);
        if lines.is_empty() {
            return why.to_owned();
        }
        let joint = if why.ends_with('?') { "" } else { ";" };
        format!("{why}{joint} its last lines:\n  {}", lines.join("\n  "))
    }

    async fn ended(&mut self, ending: Ending) {
        let Phase::Up(up) = &self.phase else { return };
        let command = self.options.shown();
        let has_lost_its_port = !up.is_ready && self.options.port.is_none() && !is_port_free(up.port);
        if up.is_ready {
            let detail = format!("the server `{command}` {ending}");
            self.lose(FailReason::ServerDied, &self.with_lines(&detail));
            return self.give_up_or_try_again(&detail);
        }
        if has_lost_its_port && self.races < MAX_RACES {
            self.races += 1;
            return self.start().await;
        }
        let why = match &ending {
            Ending::NotStarted(_) => {
                let advice = if self.options.is_one_string() {
                    "its :command is a single string with blanks in it, which is taken as the program's name: each \
                     argument is a string of its own, as in [\"program\" \"--port\" \"{port}\"]"
                } else {
                    "is the program installed, in PATH and executable?"
                };
                format!("the server `{command}` {ending}; {advice}")
            }
            Ending::Exited { .. } | Ending::Unguarded => {
                let silently = if self.logs.last(1).is_empty() { ", and wrote nothing" } else { "" };
                format!(
                    "the server `{command}` {ending} before it was ready{silently}; try the command by hand"
                )
            }
        };
        self.give_up_or_try_again(&why);
    }

    async fn due(&mut self) {
        match &mut self.phase {
            Phase::Down(_) => self.start_again().await,
            Phase::Up(up) => {
                up.look_began = Instant::now();
                up.look = Some(up.asker.clone().look(up.is_ready, up.drain.is_some()).boxed());
            }
        }
    }

    fn watch_slots(&mut self) {
        if let Phase::Up(up) = &mut self.phase
            && up.is_ready
        {
            let now = Instant::now();
            up.drain.get_or_insert(now + self.options.limits.drain);
            up.next_look = now;
        }
    }

    async fn looked(&mut self, look: Look) {
        let Phase::Up(up) = &mut self.phase else { return };
        up.look = None;
        if up.is_ready {
            return self.looked_after(look).await;
        }
        let now = Instant::now();
        up.pace = (up.pace * 3 / 2).min(SLOWEST_LOOK);
        up.next_look = now + up.pace;
        match look.probe {
            Probe::Good => {
                let owner = up.process.id().map_or(Whose::Untold, |group| whose(up.port, group));
                match (owner, look.endpoint) {
                    (Whose::Ours, Some(endpoint)) => return self.is_ready(endpoint).await,
                    (Whose::Untold, Some(endpoint)) if up.is_confirming => {
                        return self.is_ready(endpoint).await;
                    }
                    (Whose::Untold, Some(_)) => {
                        up.is_confirming = true;
                        up.next_look = now + CONFIRM;
                    }
                    (Whose::Another(id), _) => {
                        up.last_said = format!("an answer of process {id}, which has port {}", up.port);
                    }
                    (Whose::Ours | Whose::Untold, None) => {}
                }
            }
            Probe::Answered(status @ (401 | 403), _) => {
                let why = format!(
                    "the server `{}` answers {status}: it wants an API key that it takes; set the variable that \
                     :api-key-env names",
                    self.options.shown()
                );
                self.take_down().await;
                return self.give_up_or_try_again(&why);
            }
            Probe::Answered(_, said) | Probe::Silent(said) => up.last_said = said,
        }
        if let Some(since) = self.stopped_since(now) {
            let limits = self.options.limits;
            // The same limit as for unanswered probes of a ready server.
            let stopped = now.duration_since(since);
            if stopped >= limits.probe * limits.misses {
                let why = format!(
                    "the server `{}` was stopped by a signal (process state T) for {:.1} s while it loaded and is \
                     restarted",
                    self.options.shown(),
                    stopped.as_secs_f64()
                );
                self.take_down().await;
                // The signal came from outside, so a restart may succeed.
                return self.try_again(&why);
            }
        }
        let Phase::Up(up) = &self.phase else { return };
        let limit = self.options.limits.start;
        if now.duration_since(up.started) >= limit {
            let seconds = limit.as_secs_f64();
            let why = format!(
                "the server `{}` was not ready within {seconds} s ({})",
                self.options.shown(),
                up.last_said
            );
            self.take_down().await;
            self.give_up_or_try_again(&why);
        }
    }

    /// Returns since when the starting server is stopped: a process of its group is in state `T`, and none uses CPU. Low CPU
    /// alone is not evidence: a server may wait for its disk.
    fn stopped_since(&mut self, now: Instant) -> Option<Instant> {
        let worked = self.pulse.feel();
        let Phase::Up(up) = &mut self.phase else { return None };
        let works = worked > up.worked;
        up.worked = worked;
        let is_stopped = !works && up.process.id().is_some_and(is_stopped);
        up.stopped = is_stopped.then(|| up.stopped.unwrap_or(now));
        up.stopped
    }

    async fn is_ready(&mut self, endpoint: Endpoint) {
        let Phase::Up(up) = &mut self.phase else { return };
        match HttpTransport::new(&up.asker.base, self.options.key.clone(), CONNECT) {
            Ok(transport) => self.route.lead(endpoint, transport),
            // Whatever it is, it is no better after a while.
            Err(why) => {
                let command = self.options.shown();
                let why = format!("the server `{command}` answers, and nothing can be sent to it: {why}");
                self.take_down().await;
                return self.give_up_or_try_again(&why);
            }
        }
        up.is_ready = true;
        up.next_look = Instant::now() + self.options.limits.look;
        (self.was_ready, self.races) = (true, 0);
        self.enter(WorkerState::Ready, None);
    }

    /// One look at a server that is ready.
    async fn looked_after(&mut self, look: Look) {
        let Phase::Up(up) = &mut self.phase else { return };
        let now = Instant::now();
        let worked = self.pulse.feel();
        let works = worked > up.worked;
        up.worked = worked;
        let streams = self.dependents.streaming();
        let mut stuck = None;
        match &look.probe {
            Probe::Good | Probe::Answered(..=499, _) => up.misses = 0,
            // A server with one thread answers nobody while it works for a request.
            Probe::Answered(..) | Probe::Silent(_) if works && (streams > 0 || up.drain.is_some()) => {
                up.misses = 0;
            }
            Probe::Answered(..) | Probe::Silent(_) => up.misses += 1,
        }
        // A child may answer for a server that is already dead.
        if up.misses == 0 && !up.process.id().is_some_and(is_dead) {
            let began = up.look_began;
            for (_, answer) in up.verdicts.extract_if(.., |(from, _)| *from <= began) {
                let _ = answer.send(None);
            }
        }
        if up.misses >= self.options.limits.misses {
            stuck = Some(format!("left {} probes in a row unanswered", up.misses));
        }
        if let (Some(until), Some(slots)) = (up.drain, look.slots) {
            let is_busy = match slots {
                Slots::Busy(busy) => busy > streams,
                Slots::Silent => true,
                Slots::Untold => works && streams == 0,
            };
            if !is_busy {
                up.drain = None;
            } else if now >= until {
                stuck =
                    Some(String::from("kept a slot busy after its request had stalled and was disconnected"));
            }
        }
        let is_watched = up.misses > 0 || up.drain.is_some();
        let pace = self.options.limits.look;
        let next_look = now + if is_watched { pace.min(SLOWEST_LOOK) } else { pace };
        let wanted = up.verdicts.iter().map(|(from, _)| (*from).max(now + FIRST_LOOK));
        up.next_look = wanted.fold(next_look, Instant::min);
        if let Some(what) = stuck {
            let detail = format!("the server `{}` {what} and is restarted", self.options.shown());
            self.lose(FailReason::WorkerRestarted, &detail);
            self.take_down().await;
            self.give_up_or_try_again(&detail);
        }
    }
}
