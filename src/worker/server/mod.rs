//! Managed servers: a model server that its worker starts, watches, starts again and never leaves behind.
//!
//! In: [`ServerOptions`], which a spec's `:server` says. Out: a condition that the worker shows and waits for, a way to the
//! server ([`route`]), its last lines ([`logs`]), and evidence that it works ([`pulse`]). A task of its own
//! ([`keeper`]) does it all; a process of its own ([`guard`]) ends the server when the worker is gone, however it went. When
//! a server is started again is decided by [`policy`], which knows no clock.
//!
//! A request whose stream is open when the server is lost fails and keeps its text; one whose tool runs goes on and waits for
//! the server before its next turn. Nothing is sent a second time.
//!
//! Unix only, for groups of processes and their signals; who listens at a port and what a server computes is told by Linux
//! alone. Absent on purpose: servers that go to the background, whose end nobody would hear of.

mod condition;
#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod guard;
mod keeper;
mod logs;
mod look;
mod options;
mod plan;
mod policy;
mod port;
#[cfg(unix)]
mod process;
mod pulse;
mod route;

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

pub use condition::{NotReady, WorkerState, WorkerStatus};
#[cfg(not(unix))]
pub use elsewhere::guard_server;
#[cfg(unix)]
pub use guard::guard_server;
pub use options::{ServerLimits, ServerOptions};
pub use plan::GuardProgram;
pub use policy::RestartLimits;
pub use port::{is_port_free, port_holder};

pub(super) use condition::Condition;
pub(super) use keeper::{Dependents, Order};
pub(super) use route::Route;

use crate::request::Failure;
#[cfg(not(unix))]
use elsewhere::Process;
use keeper::{Keeper, Phase};
use logs::Logs;
use policy::RestartPolicy;
#[cfg(unix)]
use process::Process;
use pulse::Pulse;

/// A worker's hold on its server.
pub(super) struct Server {
    orders: mpsc::UnboundedSender<Order>,
    logs: Arc<Logs>,
    pulse: Arc<Pulse>,
    route: Arc<Route>,
}

/// What a keeper needs beyond its dependents.
pub(super) struct Seed {
    options: ServerOptions,
    orders: mpsc::UnboundedReceiver<Order>,
    logs: Arc<Logs>,
    pulse: Arc<Pulse>,
    route: Arc<Route>,
}

impl Server {
    /// A server that is started when its seed is sown.
    pub(super) fn new(options: ServerOptions) -> (Self, Seed) {
        let (sender, orders) = mpsc::unbounded_channel();
        let logs = Arc::new(Logs::new(options.secrets()));
        let pulse = Arc::new(Pulse::default());
        let program = options.command.first().map(String::as_str).unwrap_or_default();
        let name = format!("the managed server `{}`", crate::text::one_line(program.to_owned()));
        let route = Arc::new(Route::new(name, options.key.as_deref()));
        let server = Self {
            orders: sender,
            logs: Arc::clone(&logs),
            pulse: Arc::clone(&pulse),
            route: Arc::clone(&route),
        };
        (server, Seed { options, orders, logs, pulse, route })
    }

    pub(super) fn order(&self, order: Order) {
        // A keeper that is gone has stopped it.
        let _ = self.orders.send(order);
    }

    /// Waits until it is known whether the server of a broken stream is lost, and returns the loss.
    pub(super) async fn verdict(&self) -> Option<Failure> {
        let (answer, verdict) = oneshot::channel();
        self.order(Order::Verdict(answer));
        // A keeper that is gone has stopped the server, and with it its requests.
        verdict.await.ok().flatten()
    }

    pub(super) fn recent_logs(&self, count: usize) -> Vec<String> {
        self.logs.last(count)
    }

    /// As long as nothing else is known.
    pub(super) fn is_starting(&self) -> String {
        format!("{} is starting", self.route.name())
    }

    /// When it was last seen to work.
    pub(super) fn worked(&self) -> Option<Instant> {
        self.pulse.feel()
    }

    pub(super) fn route(&self) -> &Arc<Route> {
        &self.route
    }
}

/// A keeper that is lost, as by a bug, leaves nobody waiting.
struct LastWord(Arc<watch::Sender<Condition>>);

impl Drop for LastWord {
    fn drop(&mut self) {
        self.0.send_if_modified(|condition| {
            let why = "the task that keeps the server was lost";
            condition.state != WorkerState::Stopped
                && condition.enter(WorkerState::Stopped, Some(String::from(why)))
        });
    }
}

impl Seed {
    /// Starts the server, and keeps it until its [`Server`] is dropped or says stop.
    pub(super) async fn keep(
        self,
        condition: Arc<watch::Sender<Condition>>,
        dependents: Box<dyn Dependents>,
    ) {
        let Self { options, orders, logs, pulse, route } = self;
        let policy = RestartPolicy::new(options.limits.restarts);
        let _last = LastWord(Arc::clone(&condition));
        let keeper = Keeper {
            options,
            orders,
            condition,
            logs,
            pulse,
            route,
            dependents,
            policy,
            phase: Phase::Down(None),
            was_ready: false,
            races: 0,
            began: Instant::now(),
            last_loss: None,
        };
        keeper.keep().await;
    }
}
