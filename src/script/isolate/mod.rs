//! Calls in child processes, for scripts that one does not trust: a script that brings its process down takes its own
//! call with it and nothing else, and what neither interrupt nor watchdog stops is killed.
//!
//! In: a [`Script`] and a call, as a thread would get them. Out: the same answers, log lines and progress. A child
//! runs one call at a time, on a state of its own in a fresh environment like any other; it is the engine's own
//! binary (or any that calls [`serve_isolated`]), stays warm between calls, and speaks over its stdin and stdout
//! ([`protocol`]).
//!
//! There are as many children as there would be threads; a call that has waited [`PATIENCE`] because all are held
//! starts another, up to a limit. A child has the variables that its scripts may read and no others, no memory beyond
//! what its calls may use, and no terminal; children are not shared between scripts that see different variables or
//! of which only one runs programs.
//!
//! A call that ends in time leaves its child warm, and so does one that is cancelled and says so at once (1 ms, where
//! a new process takes 5). A child that is silent for half a second after its deadline is killed, with all that it started; one
//! that dies fails its call. Children end when their parent's pipe closes, whatever closed it.
//!
//! Absent on purpose: a filter of system calls. What a script can reach is settled by the host tables in the child,
//! as in a thread; a break out of Luau itself has the user's rights.

#[cfg(unix)]
mod checker;
mod child;
pub(super) mod confine;
#[cfg(unix)]
mod guard;
#[cfg(unix)]
mod peer;
pub(super) mod protocol;
mod serve;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

#[cfg(unix)]
pub use checker::check_in_processes;
#[cfg(unix)]
pub(super) use checker::checker;
#[cfg(unix)]
pub(super) use guard::{GUARD, Order as GuardOrder, Word as GuardWord, next_word};
#[cfg(unix)]
pub(super) use peer::Peer;
pub(super) use protocol::Octets;
pub use serve::serve_isolated;

/// There are none: this process compiles scripts itself.
#[cfg(not(unix))]
pub fn check_in_processes(_: ProcessOptions) {}

use self::child::{Child, Job, Kind};
use super::Script;
use super::control::{Answer, lock};
use super::host::ScriptSink;
use super::io;
use super::runner::{IDLE, MAX_QUEUE, PATIENCE, closed, queue_is_full};
use crate::tool::{CallContext, ToolCall, ToolError};

/// Where a [`ScriptRunner`](super::ScriptRunner) runs its calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Isolation {
    /// On threads of this process.
    #[default]
    Threads,
    /// In child processes, which can be killed.
    Processes(ProcessOptions),
}

/// Which program the children are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessOptions {
    /// A program that calls [`serve_isolated`] when it is started with `arguments`.
    pub program: PathBuf,
    /// What it is started with.
    pub arguments: Vec<OsString>,
}

impl ProcessOptions {
    /// The program that asks, started with `arguments`: the very file that runs now, also if another has taken its
    /// place since.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn this_program(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> std::io::Result<Self> {
        let own = PathBuf::from("/proc/self/exe");
        let program = if own.exists() { own } else { std::env::current_exe()? };
        Ok(Self { program, arguments: arguments.into_iter().map(Into::into).collect() })
    }
}

/// What variables a child has whatever its scripts may read: where the time zone, temporary files and root
/// certificates are.
const ALWAYS: [&str; 4] = ["TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"];
/// And where programs are, if its scripts may run them.
const FOR_PROGRAMS: &str = "PATH";

/// The children of one runner.
pub(super) struct Isolate {
    options: ProcessOptions,
    memory: u64,
    sink: ScriptSink,
    /// A place for each call that may run at once.
    usual: Arc<Semaphore>,
    /// Further places, while all others are held.
    extra: Arc<Semaphore>,
    /// Most children without a call.
    most_idle: usize,
    state: Mutex<State>,
    closed: CancellationToken,
}

#[derive(Default)]
struct State {
    /// The longest idle first.
    idle: Vec<(Child, Instant)>,
    is_reaped: bool,
    calls: usize,
    /// The numbers of scripts, by their addresses, which stay taken while the `Weak`s are held.
    scripts: HashMap<usize, (Weak<Script>, u64)>,
    next_script: u64,
}

impl Isolate {
    /// Children for at most `usual` calls at once, or `most` while all of them are held.
    pub(super) fn new(
        options: ProcessOptions,
        usual: usize,
        most: usize,
        memory: u64,
        sink: ScriptSink,
    ) -> Arc<Self> {
        let usual = usual.max(1);
        Arc::new(Self {
            options,
            memory,
            sink,
            usual: Arc::new(Semaphore::new(usual)),
            extra: Arc::new(Semaphore::new(most.saturating_sub(usual))),
            most_idle: usual,
            state: Mutex::default(),
            closed: CancellationToken::new(),
        })
    }

    /// Runs a call to its end; dropping the future cancels it.
    pub(super) async fn call(
        self: Arc<Self>,
        script: Arc<Script>,
        call: ToolCall,
        context: CallContext,
        timeout: Duration,
    ) -> Answer {
        let counted = Counted::new(&self)?;
        let job =
            Job { script_number: self.number(&script), script, call, context, timeout, memory: self.memory };
        let (sender, receiver) = oneshot::channel();
        // A task of its own, which outlives the caller: a child is left in order or killed.
        io::spawn(async move {
            let isolate = Arc::clone(&counted.0);
            isolate.drive(job, sender).await;
            drop(counted);
        })
        .map_err(|error| ToolError::new(error.kind, error.message))?;
        receiver.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Ends all calls and children.
    pub(super) fn close(&self) {
        self.closed.cancel();
        // Their pipes close with them, and they end.
        drop(std::mem::take(&mut lock(&self.state).idle));
    }

    async fn drive(self: Arc<Self>, job: Job, mut answer: oneshot::Sender<Answer>) {
        let kind = Arc::new(kind_of(&job.script));
        let begun = async {
            let place = self.place().await?;
            Ok((place, self.child(&kind).await?))
        };
        let (place, mut child) = tokio::select! {
            begun = begun => match begun {
                Ok(begun) => begun,
                Err(error) => return drop(answer.send(Err(error))),
            },
            () = answer.closed() => return,
            () = self.closed.cancelled() => return drop(answer.send(Err(closed()))),
        };
        let stopped = async {
            tokio::select! {
                () = answer.closed() => {}
                () = self.closed.cancelled() => {}
            }
        };
        let (ended, is_usable) = child.call(&job, &self.sink, stopped).await;
        let ended = if self.closed.is_cancelled() { Err(closed()) } else { ended };
        // A child that can run more does so for the caller's next call, a dead one holds nobody up.
        if is_usable {
            self.give_back(child);
            drop(answer.send(ended));
        } else {
            drop(answer.send(ended));
            child.kill().await;
        }
        drop(place);
    }

    /// Waits for a place: a usual one or, after a while, another.
    async fn place(&self) -> Result<OwnedSemaphorePermit, ToolError> {
        let further = async {
            tokio::time::sleep(PATIENCE).await;
            Arc::clone(&self.extra).acquire_owned().await
        };
        tokio::select! {
            biased;
            place = Arc::clone(&self.usual).acquire_owned() => place,
            place = further => place,
        }
        .map_err(|_| closed())
    }

    /// A child of `kind`: the one that was idle last, or a new one.
    async fn child(&self, kind: &Arc<Kind>) -> Result<Child, ToolError> {
        loop {
            let idle = {
                let mut state = lock(&self.state);
                let at = state.idle.iter().rposition(|(child, _)| child.kind == *kind);
                at.map(|at| state.idle.remove(at).0)
            };
            let Some(mut child) = idle else {
                return Child::start(&self.options, Arc::clone(kind)).await;
            };
            if child.is_alive() {
                return Ok(child);
            }
            child.kill().await;
        }
    }

    fn give_back(self: &Arc<Self>, child: Child) {
        let mut state = lock(&self.state);
        if self.closed.is_cancelled() {
            return;
        }
        state.idle.push((child, Instant::now()));
        let surplus = if state.idle.len() > self.most_idle { Some(state.idle.remove(0).0) } else { None };
        let is_reaped = std::mem::replace(&mut state.is_reaped, true);
        drop(state);
        if let Some(child) = surplus {
            tokio::spawn(child.dismiss());
        }
        if !is_reaped {
            tokio::spawn(reap(Arc::downgrade(self)));
        }
    }

    /// The number of `script`, for as long as anyone holds it.
    fn number(&self, script: &Arc<Script>) -> u64 {
        let mut state = lock(&self.state);
        let State { scripts, next_script, .. } = &mut *state;
        let address = Arc::as_ptr(script).addr();
        if let Some((_, number)) = scripts.get(&address) {
            return *number;
        }
        // A reload's worth of scripts nobody holds any more goes at a time.
        scripts.retain(|_, (script, _)| script.strong_count() > 0);
        *next_script += 1;
        scripts.insert(address, (Arc::downgrade(script), *next_script));
        *next_script
    }
}

/// One of the calls that wait or run.
struct Counted(Arc<Isolate>);

impl Counted {
    fn new(isolate: &Arc<Isolate>) -> Result<Self, ToolError> {
        let mut state = lock(&isolate.state);
        if isolate.closed.is_cancelled() {
            return Err(closed());
        }
        if state.calls >= MAX_QUEUE {
            return Err(queue_is_full());
        }
        state.calls += 1;
        Ok(Self(Arc::clone(isolate)))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        lock(&self.0.state).calls -= 1;
    }
}

/// Dismisses children that have been idle for long, until there are none.
async fn reap(isolate: Weak<Isolate>) {
    loop {
        tokio::time::sleep(IDLE / 2).await;
        let Some(isolate) = isolate.upgrade() else { return };
        let mut state = lock(&isolate.state);
        while state.idle.first().is_some_and(|(_, since)| since.elapsed() >= IDLE) {
            let (child, _) = state.idle.remove(0);
            tokio::spawn(child.dismiss());
        }
        if state.idle.is_empty() {
            state.is_reaped = false;
            return;
        }
    }
}

/// What a child must be to run `script`.
fn kind_of(script: &Script) -> Kind {
    let permissions = &script.permissions;
    let runs = !permissions.run.is_empty();
    let given = ALWAYS.into_iter().chain(runs.then_some(FOR_PROGRAMS));
    let named = permissions.env.iter().map(String::as_str).filter(|name| !name.contains(['=', '\0']));
    let environment = given
        .chain(named)
        .filter(|name| !name.is_empty())
        .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
        .collect();
    Kind { environment, runs }
}
