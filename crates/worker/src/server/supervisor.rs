//! The task that supervises a managed server: starts it, waits until it is ready, checks it and restarts it.

use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::{FailReason, Failure};
use deftool_process::{is_dead, is_stopped};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::condition::{Condition, WorkerState};
use super::health::{CONNECT, HealthCheck, HealthChecker, Probe, Slots};
use super::liveness::LivenessProbe;
use super::logs::Logs;
use super::options::ServerOptions;
use super::plan::{ProcessEvent, Termination};
use super::policy::{RestartDecision, RestartPolicy, WINDOW};
use super::port::{PortOwner, is_port_free, port_owner};
#[cfg(unix)]
use super::process::Process;
use super::route::Route;
#[cfg(not(unix))]
use super::unsupported::Process;
use crate::endpoint::Endpoint;
use crate::transport::HttpTransport;

/// Interval between the first two checks of a starting server. Each further interval is longer by half.
const FIRST_CHECK: Duration = Duration::from_millis(50);
/// Maximum interval between two checks of a starting server, and of a ready server that did not answer the last check.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// If the owner of the port is unknown, a good answer counts only if the server process still runs after this time. A
/// server that could not bind its port exits.
const CONFIRM: Duration = Duration::from_millis(250);
/// Maximum immediate restarts because another process took the chosen port.
const MAX_RACES: u32 = 3;
/// Number of log lines in an error.
const LOG_LINES_IN_ERROR: usize = 8;

/// A command from the worker to the supervisor.
#[derive(Debug)]
pub(crate) enum SupervisorCommand {
    /// Restart the server, even if automatic restarts are disabled.
    Restart,
    /// A request stalled and was disconnected: its slot must become idle.
    Stalled,
    /// A stream of this server broke. The answer is the loss of the server, or `None` once a later check shows that the
    /// server still runs.
    LossQuery(oneshot::Sender<Option<Failure>>),
    /// Stop the server and the supervisor.
    Stop,
}

/// The requests that depend on the server.
pub(crate) trait Dependents: Send + Sync {
    /// Returns the number of requests with an open stream.
    fn streaming(&self) -> usize;
    /// Fails the requests with an open stream.
    fn fail(&self, failure: &Failure);
}

/// A server, its state, and its connections to the worker.
pub(crate) struct Supervisor {
    pub(super) options: ServerOptions,
    pub(super) commands: mpsc::UnboundedReceiver<SupervisorCommand>,
    pub(super) condition: Arc<watch::Sender<Condition>>,
    pub(super) logs: Arc<Logs>,
    pub(super) liveness: Arc<LivenessProbe>,
    pub(super) route: Arc<Route>,
    pub(super) dependents: Box<dyn Dependents>,
    pub(super) policy: RestartPolicy,
    pub(super) phase: Phase,
    /// Whether the server has been ready since the worker or the user started it. A server that fails before that is
    /// not restarted: it would fail again.
    pub(super) was_ready: bool,
    pub(super) races: u32,
    pub(super) began: Instant,
    /// The last loss of the server.
    pub(super) last_loss: Option<Failure>,
}

pub(super) enum Phase {
    /// No process runs. Holds the time of the next start; `None`: only a restart command starts the server.
    Down(Option<Instant>),
    Up(Box<Up>),
}

/// A running server.
pub(super) struct Up {
    process: Process,
    port: u16,
    checker: HealthChecker,
    started: Instant,
    is_ready: bool,
    /// The last probe result while the server starts.
    last_answer: String,
    check: Option<BoxFuture<'static, HealthCheck>>,
    /// Start of the last check.
    check_began: Instant,
    next_check: Instant,
    /// Start of the next regular check of a ready server. Earlier checks are extra checks, for a loss query or a slot:
    /// they may be frequent, so they do not count as missed probes.
    next_regular_check: Instant,
    /// Pending [`SupervisorCommand::LossQuery`]s, each with the earliest start of a check that answers it.
    pending_queries: Vec<(Instant, oneshot::Sender<Option<Failure>>)>,
    /// While the server starts: the time since which one of its processes is stopped and none is active.
    stopped: Option<Instant>,
    /// Interval between two checks while the server starts.
    interval: Duration,
    is_confirming: bool,
    misses: u32,
    /// Time of the last observed CPU activity, as of the last check.
    last_active: Option<Instant>,
    /// Deadline for the slot of a stalled request to become idle.
    drain: Option<Instant>,
}

enum Event {
    /// `None`: the worker was dropped.
    Command(Option<SupervisorCommand>),
    Process(ProcessEvent),
    Checked(HealthCheck),
    Timer,
}

impl Supervisor {
    /// Supervises the server until the worker stops or is dropped.
    pub(crate) async fn run(mut self) {
        self.start();
        loop {
            match self.next().await {
                Event::Command(None | Some(SupervisorCommand::Stop)) => {
                    self.stop_server().await;
                    self.enter(WorkerState::Stopped, None);
                    return;
                }
                Event::Command(Some(SupervisorCommand::Restart)) => {
                    self.policy.reset();
                    self.was_ready = false;
                    self.report_loss(FailReason::WorkerRestarted, "the worker was restarted");
                    self.stop_server().await;
                    self.start_again();
                }
                Event::Command(Some(SupervisorCommand::Stalled)) => self.watch_slots(),
                Event::Command(Some(SupervisorCommand::LossQuery(answer))) => self.answer_loss_query(answer),
                Event::Process(ProcessEvent::Started) => self.track_process(),
                Event::Process(ProcessEvent::Ended(ending)) => self.on_exit(ending),
                Event::Checked(check) => self.on_check(check).await,
                Event::Timer => self.on_timer(),
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
                    command = self.commands.recv() => Event::Command(command),
                    () = due => Event::Timer,
                }
            }
            Phase::Up(up) => {
                let Up { process, check, next_check, .. } = &mut **up;
                let is_checking = check.is_some();
                let checked = async {
                    match check {
                        Some(check) => check.await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    command = self.commands.recv() => Event::Command(command),
                    // Polled before the probe, because the answer may come from another process on the port.
                    event = process.next_event() => Event::Process(event),
                    check = checked => Event::Checked(check),
                    () = sleep_until(*next_check), if !is_checking => Event::Timer,
                }
            }
        }
    }

    fn enter(&self, state: WorkerState, reason: Option<String>) {
        let reason = reason.map(|reason| self.options.without_secrets(&reason));
        self.condition.send_if_modified(|condition| condition.enter(state, reason));
    }

    /// Marks the server as lost: no further requests are sent to it, and requests with an open stream fail.
    fn report_loss(&mut self, reason: FailReason, detail: &str) {
        self.enter(WorkerState::Running, Some(detail.to_owned()));
        let failure = Failure::new(reason, "", detail);
        self.dependents.fail(&failure);
        if let Phase::Up(up) = &mut self.phase {
            for (_, answer) in up.pending_queries.drain(..) {
                let _ = answer.send(Some(failure.clone()));
            }
        }
        self.last_loss = Some(failure);
    }

    /// Answers a loss query. The connection ends shortly before the process, and the guard reports the exit even later.
    /// Therefore only a check that starts after [`CONFIRM`] shows that the server still runs. If the server is not
    /// ready, the server of the stream is already lost.
    fn answer_loss_query(&mut self, answer: oneshot::Sender<Option<Failure>>) {
        match &mut self.phase {
            Phase::Up(up) if up.is_ready => {
                let from = Instant::now() + CONFIRM;
                up.pending_queries.push((from, answer));
                up.next_check = up.next_check.min(from);
            }
            Phase::Up(_) | Phase::Down(_) => {
                let _ = answer.send(self.last_loss.clone());
            }
        }
    }

    fn start(&mut self) {
        self.enter(WorkerState::Running, Some(format!("the server `{}` is starting", self.options.shown())));
        let started = match self.options.plan() {
            Ok((plan, port)) => {
                let process = Process::start(plan, Arc::clone(&self.logs));
                process.and_then(|process| Ok((process, port, HealthChecker::new(&self.options, port)?)))
            }
            Err(why) => Err(why),
        };
        match started {
            Err(why) => self.fail_or_restart(&format!("the server `{}`: {why}", self.options.shown())),
            Ok((process, port, checker)) => {
                let now = Instant::now();
                self.phase = Phase::Up(Box::new(Up {
                    process,
                    port,
                    checker,
                    started: now,
                    is_ready: false,
                    last_answer: String::from("nothing"),
                    check: None,
                    check_began: now,
                    next_check: now + FIRST_CHECK,
                    next_regular_check: now + FIRST_CHECK,
                    pending_queries: Vec::new(),
                    stopped: None,
                    interval: FIRST_CHECK,
                    is_confirming: false,
                    misses: 0,
                    last_active: None,
                    drain: None,
                }));
            }
        }
    }

    fn start_again(&mut self) {
        self.condition.send_modify(|condition| condition.restarts += 1);
        self.start();
    }

    fn track_process(&mut self) {
        let Phase::Up(up) = &self.phase else { return };
        let (pid, endpoint) = (up.process.id(), up.checker.base.clone());
        self.liveness.track(pid);
        self.condition.send_modify(|condition| {
            condition.pid = pid;
            condition.endpoint = Some(endpoint);
        });
    }

    /// Stops the server process, if one runs.
    async fn stop_server(&mut self) -> Option<Termination> {
        let phase = std::mem::replace(&mut self.phase, Phase::Down(None));
        let ending = match phase {
            Phase::Up(up) => Some(up.process.stop().await),
            Phase::Down(_) => None,
        };
        self.clear_process();
        ending
    }

    fn clear_process(&self) {
        self.liveness.track(None);
        self.condition.send_modify(|condition| {
            condition.pid = None;
            condition.endpoint = None;
        });
    }

    /// Handles the end of the process for the reason `why`: schedules a restart if the server was ready before;
    /// otherwise, enters the failed state.
    fn fail_or_restart(&mut self, why: &str) {
        if self.was_ready {
            return self.schedule_restart(why);
        }
        self.phase = Phase::Down(None);
        self.clear_process();
        self.enter(WorkerState::Failed, Some(self.with_log_lines(why)));
    }

    /// Schedules a restart for the reason `why`, unless there were too many.
    fn schedule_restart(&mut self, why: &str) {
        self.phase = Phase::Down(None);
        self.clear_process();
        match self.policy.on_loss(self.began.elapsed(), fastrand::f64()) {
            RestartDecision::Restart(delay) => {
                let seconds = delay.as_secs_f64();
                self.enter(WorkerState::Running, Some(format!("{why}; restarting in {seconds:.1} s")));
                self.phase = Phase::Down(Some(Instant::now() + delay));
            }
            RestartDecision::GiveUp => {
                let why = format!(
                    "{why}; giving up after {} restarts within {} min; restart the worker to try again",
                    self.options.limits.max_restarts,
                    WINDOW.as_secs() / 60
                );
                self.enter(WorkerState::Failed, Some(self.with_log_lines(&why)));
            }
        }
    }

    fn with_log_lines(&self, why: &str) -> String {
        let lines = self.logs.last(LOG_LINES_IN_ERROR);
        if lines.is_empty() {
            return why.to_owned();
        }
        let joint = if why.ends_with('?') { "" } else { ";" };
        format!("{why}{joint} last lines of its output:\n  {}", lines.join("\n  "))
    }

    fn on_exit(&mut self, ending: Termination) {
        let Phase::Up(up) = &self.phase else { return };
        let command = self.options.shown();
        let port_is_taken = !up.is_ready && self.options.port.is_none() && !is_port_free(up.port);
        if up.is_ready {
            let detail = format!("the server `{command}` {ending}");
            self.report_loss(FailReason::ServerDied, &self.with_log_lines(&detail));
            return self.fail_or_restart(&detail);
        }
        if port_is_taken && self.races < MAX_RACES {
            self.races += 1;
            return self.start();
        }
        let why = match &ending {
            Termination::NotStarted(_) => {
                let advice = if self.options.is_one_string() {
                    "`:command` is a single string that contains spaces, so it is used as the program name; write \
                     each argument as a separate string, as in [\"program\" \"--port\" \"{port}\"]"
                } else {
                    "is the program installed, in PATH and executable?"
                };
                format!("the server `{command}` {ending}; {advice}")
            }
            Termination::Exited { .. } | Termination::GuardLost => {
                let no_output = if self.logs.last(1).is_empty() { " and wrote no output" } else { "" };
                format!(
                    "the server `{command}` {ending} before it was ready{no_output}; run the command manually"
                )
            }
        };
        self.fail_or_restart(&why);
    }

    fn on_timer(&mut self) {
        match &mut self.phase {
            Phase::Down(_) => self.start_again(),
            Phase::Up(up) => {
                up.check_began = Instant::now();
                up.check = Some(up.checker.clone().check(up.is_ready, up.drain.is_some()).boxed());
            }
        }
    }

    fn watch_slots(&mut self) {
        if let Phase::Up(up) = &mut self.phase
            && up.is_ready
        {
            let now = Instant::now();
            up.drain.get_or_insert(now + self.options.limits.drain);
            up.next_check = now;
        }
    }

    async fn on_check(&mut self, check: HealthCheck) {
        let Phase::Up(up) = &mut self.phase else { return };
        up.check = None;
        if up.is_ready {
            return self.check_ready_server(check).await;
        }
        let now = Instant::now();
        up.interval = (up.interval * 3 / 2).min(MAX_CHECK_INTERVAL);
        up.next_check = now + up.interval;
        match check.probe {
            Probe::Healthy => {
                let owner = up.process.id().map_or(PortOwner::Unknown, |group| port_owner(up.port, group));
                match (owner, check.endpoint) {
                    (PortOwner::Server, Some(endpoint)) => return self.enter_ready(endpoint).await,
                    (PortOwner::Unknown, Some(endpoint)) if up.is_confirming => {
                        return self.enter_ready(endpoint).await;
                    }
                    (PortOwner::Unknown, Some(_)) => {
                        up.is_confirming = true;
                        up.next_check = now + CONFIRM;
                    }
                    (PortOwner::Other(id), _) => {
                        up.last_answer = format!("port {} is used by process {id}", up.port);
                    }
                    (PortOwner::Server | PortOwner::Unknown, None) => {}
                }
            }
            Probe::Answered(status @ (401 | 403), _) => {
                let why = format!(
                    "the server `{}` returned HTTP {status}: set a valid API key in {}",
                    self.options.shown(),
                    self.options.key_variable
                );
                self.stop_server().await;
                return self.fail_or_restart(&why);
            }
            Probe::Answered(_, message) | Probe::NoAnswer(message) => up.last_answer = message,
        }
        if let Some(since) = self.stopped_since(now) {
            let limits = self.options.limits;
            // The same limit as for unanswered probes of a ready server.
            let stopped = now.duration_since(since);
            if stopped >= limits.probe * limits.misses {
                let why = format!(
                    "the server `{}` was stopped by a signal (process state T) for {:.1} s while loading and is \
                     restarted",
                    self.options.shown(),
                    stopped.as_secs_f64()
                );
                self.stop_server().await;
                // The signal came from outside, so a restart may succeed.
                return self.schedule_restart(&why);
            }
        }
        let Phase::Up(up) = &self.phase else { return };
        let limit = self.options.limits.start;
        if now.duration_since(up.started) >= limit {
            let seconds = limit.as_secs_f64();
            let why = format!(
                "the server `{}` was not ready within {seconds} s ({})",
                self.options.shown(),
                up.last_answer
            );
            self.stop_server().await;
            self.fail_or_restart(&why);
        }
    }

    /// Returns the time since which the starting server is stopped: a process of its group is in state `T`, and none
    /// uses CPU. Low CPU usage alone is not evidence: a server may wait for its disk.
    fn stopped_since(&mut self, now: Instant) -> Option<Instant> {
        let last_active = self.liveness.sample();
        let Phase::Up(up) = &mut self.phase else { return None };
        let is_active = last_active > up.last_active;
        up.last_active = last_active;
        let is_stopped = !is_active && up.process.id().is_some_and(is_stopped);
        up.stopped = is_stopped.then(|| up.stopped.unwrap_or(now));
        up.stopped
    }

    async fn enter_ready(&mut self, endpoint: Endpoint) {
        let Phase::Up(up) = &mut self.phase else { return };
        match HttpTransport::new(&up.checker.base, self.options.key.clone(), CONNECT) {
            Ok(transport) => self.route.set_target(endpoint, transport),
            // Waiting does not fix a client that cannot be created.
            Err(why) => {
                let command = self.options.shown();
                let why =
                    format!("the server `{command}` is running, but requests cannot be sent to it: {why}");
                self.stop_server().await;
                return self.fail_or_restart(&why);
            }
        }
        up.is_ready = true;
        up.next_check = Instant::now() + self.options.limits.probe_interval;
        up.next_regular_check = up.next_check;
        (self.was_ready, self.races) = (true, 0);
        self.enter(WorkerState::Ready, None);
    }

    /// Handles a check of a ready server.
    async fn check_ready_server(&mut self, check: HealthCheck) {
        let Phase::Up(up) = &mut self.phase else { return };
        let now = Instant::now();
        let last_active = self.liveness.sample();
        let is_active = last_active > up.last_active;
        up.last_active = last_active;
        let streams = self.dependents.streaming();
        let mut unresponsive = None;
        let is_alive = match &check.probe {
            Probe::Healthy | Probe::Answered(..=499, _) => true,
            // A server with one thread cannot answer probes while it processes a request.
            Probe::Answered(..) | Probe::NoAnswer(_) => is_active && (streams > 0 || up.drain.is_some()),
        };
        let is_regular = up.check_began >= up.next_regular_check;
        if is_alive {
            up.misses = 0;
        } else if is_regular {
            up.misses += 1;
        }
        // A child may answer for a server that is already dead.
        if is_alive && !up.process.id().is_some_and(is_dead) {
            let began = up.check_began;
            for (_, answer) in up.pending_queries.extract_if(.., |(from, _)| *from <= began) {
                let _ = answer.send(None);
            }
        }
        if up.misses >= self.options.limits.misses {
            unresponsive = Some(format!("did not answer {} consecutive probes", up.misses));
        }
        if let (Some(until), Some(slots)) = (up.drain, check.slots) {
            let is_busy = match slots {
                Slots::Busy(busy) => busy > streams,
                Slots::NoAnswer => true,
                Slots::Unknown => is_active && streams == 0,
            };
            if !is_busy {
                up.drain = None;
            } else if now >= until {
                unresponsive =
                    Some(String::from("kept a slot busy after its request had stalled and was disconnected"));
            }
        }
        let is_watched = !is_alive || up.drain.is_some();
        let interval = self.options.limits.probe_interval;
        let next_check = now + if is_watched { interval.min(MAX_CHECK_INTERVAL) } else { interval };
        up.next_regular_check = if is_regular { next_check } else { up.next_regular_check.min(next_check) };
        let queried = up.pending_queries.iter().map(|(from, _)| (*from).max(now + FIRST_CHECK));
        up.next_check = queried.fold(up.next_regular_check, Instant::min);
        if let Some(what) = unresponsive {
            let detail = format!("the server `{}` {what} and is restarted", self.options.shown());
            self.report_loss(FailReason::WorkerRestarted, &detail);
            self.stop_server().await;
            self.fail_or_restart(&detail);
        }
    }
}
