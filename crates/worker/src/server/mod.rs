//! Managed servers: a model server that its worker starts, supervises, restarts and ends.
//!
//! Input: [`ServerOptions`], from `:server` in a spec. Output: a condition that the worker reports and waits for, a
//! transport to the server ([`route`]), its last log lines ([`logs`]), and its CPU activity ([`liveness`]). A separate
//! task ([`supervisor`]) manages the server. Its guard ([`deftool_process`]) ends the server when the worker exits for
//! any reason. [`policy`] decides when a server is restarted; it does not read a clock.
//!
//! When the server is lost, a request with an open stream fails and keeps its text. A request that runs a tool
//! continues and waits for the server before its next turn. No request is sent twice.
//!
//! Requires Unix for process groups and signals. Only Linux reports the owner of a port and the CPU time of a process.
//! Servers that go to the background are not supported: their end cannot be observed.

mod condition;
mod health;
mod liveness;
mod logs;
mod options;
mod plan;
mod policy;
mod port;
#[cfg(unix)]
mod process;
mod route;
mod supervisor;
#[cfg(not(unix))]
mod unsupported;

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

pub use condition::{NotReady, WorkerState, WorkerStatus};
pub use options::ServerOptions;
pub use port::{is_port_free, port_holder};

pub(super) use condition::Condition;
pub(super) use route::Route;
pub(super) use supervisor::{Dependents, SupervisorCommand};

use deftool_chat::request::Failure;
use liveness::LivenessProbe;
use logs::Logs;
use policy::RestartPolicy;
use supervisor::{Phase, Supervisor};

/// A worker's handle to its server.
pub(super) struct Server {
    commands: mpsc::UnboundedSender<SupervisorCommand>,
    logs: Arc<Logs>,
    liveness: Arc<LivenessProbe>,
    route: Arc<Route>,
}

/// A supervisor that is not yet running, without its dependents.
pub(super) struct PendingSupervisor {
    options: ServerOptions,
    commands: mpsc::UnboundedReceiver<SupervisorCommand>,
    logs: Arc<Logs>,
    liveness: Arc<LivenessProbe>,
    route: Arc<Route>,
}

impl Server {
    /// Creates a server, which starts when the returned supervisor runs.
    pub(super) fn new(options: ServerOptions) -> (Self, PendingSupervisor) {
        let (sender, commands) = mpsc::unbounded_channel();
        let logs = Arc::new(Logs::new(options.secrets()));
        let liveness = Arc::new(LivenessProbe::default());
        let program = options.command.first().map(String::as_str).unwrap_or_default();
        let name = format!("the managed server `{}`", deftool_lang::text::one_line(program.to_owned()));
        let route = Arc::new(Route::new(name, options.key.as_deref()));
        let server = Self {
            commands: sender,
            logs: Arc::clone(&logs),
            liveness: Arc::clone(&liveness),
            route: Arc::clone(&route),
        };
        (server, PendingSupervisor { options, commands, logs, liveness, route })
    }

    pub(super) fn send(&self, command: SupervisorCommand) {
        // If the supervisor has ended, the server is stopped.
        let _ = self.commands.send(command);
    }

    /// Waits until it is known whether the server of a broken stream is lost. Returns the loss.
    pub(super) async fn loss(&self) -> Option<Failure> {
        let (answer, loss) = oneshot::channel();
        self.send(SupervisorCommand::LossQuery(answer));
        // If the supervisor has ended, the server and its requests are stopped.
        loss.await.ok().flatten()
    }

    pub(super) fn recent_logs(&self, count: usize) -> Vec<String> {
        self.logs.last(count)
    }

    /// Returns the reason for the initial state.
    pub(super) fn starting_reason(&self) -> String {
        format!("{} is starting", self.route.name())
    }

    /// Returns the time of the last observed CPU activity.
    pub(super) fn last_active(&self) -> Option<Instant> {
        self.liveness.sample()
    }

    pub(super) fn route(&self) -> &Arc<Route> {
        &self.route
    }
}

/// Enters the stopped state on drop, so that no task waits for a supervisor that panicked.
struct StoppedOnDrop(Arc<watch::Sender<Condition>>);

impl Drop for StoppedOnDrop {
    fn drop(&mut self) {
        self.0.send_if_modified(|condition| {
            let why = "the supervisor of the server ended unexpectedly";
            condition.state != WorkerState::Stopped
                && condition.enter(WorkerState::Stopped, Some(String::from(why)))
        });
    }
}

impl PendingSupervisor {
    /// Starts the server and supervises it until its [`Server`] is dropped or sends a stop command.
    pub(super) async fn run(self, condition: Arc<watch::Sender<Condition>>, dependents: Box<dyn Dependents>) {
        let Self { options, commands, logs, liveness, route } = self;
        let policy = RestartPolicy::new(options.limits);
        let _stopped = StoppedOnDrop(Arc::clone(&condition));
        let supervisor = Supervisor {
            options,
            commands,
            condition,
            logs,
            liveness,
            route,
            dependents,
            policy,
            phase: Phase::Down(None),
            was_ready: false,
            races: 0,
            began: Instant::now(),
            last_loss: None,
        };
        supervisor.run().await;
    }
}
