//! Runs calls in child processes, for untrusted scripts. A script that crashes its process fails only its own call, and
//! a script that neither the interrupt nor the watchdog stops is killed.
//!
//! Input: a [`Script`] and a call, as for a thread. Output: the same answers, log lines and progress. A child runs one
//! call at a time, with its own Lua state and a fresh environment, as a thread does. It runs the engine's own binary
//! (or any that calls [`serve_isolated`]), is reused for further calls, and communicates over its stdin and stdout
//! ([`protocol`]).
//!
//! There are as many children as there would be threads. A call that has waited [`MAX_QUEUE_WAIT`] because all children
//! are busy starts another child, up to a limit. A child has the environment variables that its scripts may read and no
//! others, the memory that its calls may use, and no terminal. Scripts share children only if they have the same
//! variables and either all or none of them may run programs.
//!
//! A child is reused if its call ends in time, or if it confirms a cancellation at once (this takes 1 ms, a new process
//! 4 ms). A child that does not answer within half a second after the deadline is killed, with all processes that it
//! started. If a child dies, its call fails. Children end when the pipe to their parent closes.
//!
//! Out of scope: a system call filter for scripts. The host tables in the child determine what a script can access, as in a
//! thread. A script that breaks out of Luau itself has the user's rights.

mod checker;
mod child;
mod conversion;
mod options;
mod protocol;
mod serve;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

pub use checker::check_in_processes;
pub use options::Isolation;
pub use serve::serve_isolated;

use deftool_lang::tool::{CallContext, ToolCall, ToolError};
use deftool_process::{HelperProgram, lock};

use self::checker::checker;
use self::child::{Child, Job, Kind};
use super::control::Answer;
use super::events::ScriptSink;
use super::io;
use super::runner::queue::{IDLE_LIMIT, MAX_QUEUE, MAX_QUEUE_WAIT, closed, queue_is_full};
use super::script::Script;

/// The children of one runner.
pub(super) struct ProcessPool {
    options: HelperProgram,
    memory: u64,
    sink: ScriptSink,
    /// One permit for each call that may run at the same time.
    usual: Arc<Semaphore>,
    /// Additional permits, for when all usual ones are in use.
    extra: Arc<Semaphore>,
    /// Maximum number of idle children.
    most_idle: usize,
    state: Mutex<State>,
    closed: CancellationToken,
}

#[derive(Default)]
struct State {
    /// Idle children, longest idle first.
    idle: Vec<(Child, Instant)>,
    is_reaped: bool,
    calls: usize,
    /// The numbers of scripts, by address. An address is not reused while its `Weak` exists.
    scripts: HashMap<usize, (Weak<Script>, u64)>,
    next_script: u64,
}

impl ProcessPool {
    /// Creates the pool for at most `usual` calls at a time, or `most` while all usual permits are in use.
    pub(super) fn new(
        options: HelperProgram,
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
            most_idle: most.max(usual),
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
        // A separate task, which outlives the caller: it returns the child to the pool or kills it.
        io::spawn(async move {
            let pool = Arc::clone(&counted.0);
            pool.drive(job, sender).await;
            drop(counted);
        })
        .map_err(|error| ToolError::new(error.kind, error.message))?;
        receiver.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Ends all calls and children.
    pub(super) fn close(&self) {
        self.closed.cancel();
        // Dropping a child kills it.
        drop(std::mem::take(&mut lock(&self.state).idle));
    }

    async fn drive(self: Arc<Self>, job: Job, mut answer: oneshot::Sender<Answer>) {
        let kind = Arc::new(Kind::of(&job.script.permissions));
        let begun = async {
            let permit = self.acquire_permit().await?;
            Ok((permit, self.child(&kind).await?))
        };
        let (permit, mut child) = tokio::select! {
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
        // The child is available before the caller's next call. The end of a broken child does not delay the answer.
        if is_usable {
            self.give_back(child);
            drop(answer.send(ended));
        } else {
            drop(answer.send(ended));
            child.kill().await;
        }
        drop(permit);
    }

    /// Waits for a usual permit or, after [`MAX_QUEUE_WAIT`], for an additional one.
    async fn acquire_permit(&self) -> Result<OwnedSemaphorePermit, ToolError> {
        let further = async {
            tokio::time::sleep(MAX_QUEUE_WAIT).await;
            Arc::clone(&self.extra).acquire_owned().await
        };
        tokio::select! {
            biased;
            permit = Arc::clone(&self.usual).acquire_owned() => permit,
            permit = further => permit,
        }
        .map_err(|_| closed())
    }

    /// Returns a child of `kind`: the one that became idle last, the one that compiled the scripts, or a new one.
    async fn child(&self, kind: &Arc<Kind>) -> Result<Child, ToolError> {
        loop {
            let idle = {
                let mut state = lock(&self.state);
                let at = state.idle.iter().rposition(|(child, _)| child.kind == *kind);
                at.map(|at| state.idle.remove(at).0)
            };
            let idle = idle.or_else(|| checker()?.take(&self.options, kind));
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
            tokio::spawn(child.shut_down());
        }
        if !is_reaped {
            tokio::spawn(reap(Arc::downgrade(self)));
        }
    }

    /// Returns the number of `script`, which does not change while the script is in use.
    fn number(&self, script: &Arc<Script>) -> u64 {
        let mut state = lock(&self.state);
        let State { scripts, next_script, .. } = &mut *state;
        let address = Arc::as_ptr(script).addr();
        if let Some((_, number)) = scripts.get(&address) {
            return *number;
        }
        // Removes the scripts of previous loads.
        scripts.retain(|_, (script, _)| script.strong_count() > 0);
        *next_script += 1;
        scripts.insert(address, (Arc::downgrade(script), *next_script));
        *next_script
    }
}

/// A counted call, waiting or running.
struct Counted(Arc<ProcessPool>);

impl Counted {
    fn new(pool: &Arc<ProcessPool>) -> Result<Self, ToolError> {
        let mut state = lock(&pool.state);
        if pool.closed.is_cancelled() {
            return Err(closed());
        }
        if state.calls >= MAX_QUEUE {
            return Err(queue_is_full());
        }
        state.calls += 1;
        Ok(Self(Arc::clone(pool)))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        lock(&self.0.state).calls -= 1;
    }
}

/// Shuts down children that have been idle for [`IDLE_LIMIT`], until no child is idle.
async fn reap(pool: Weak<ProcessPool>) {
    loop {
        tokio::time::sleep(IDLE_LIMIT / 2).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut state = lock(&pool.state);
        while state.idle.first().is_some_and(|(_, since)| since.elapsed() >= IDLE_LIMIT) {
            let (child, _) = state.idle.remove(0);
            tokio::spawn(child.shut_down());
        }
        if state.idle.is_empty() {
            state.is_reaped = false;
            return;
        }
    }
}
