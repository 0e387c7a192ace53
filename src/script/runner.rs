//! Scripts on threads of their own; [`isolate`](super::isolate) has them in processes.
//!
//! Calls wait in one queue; threads take from it whenever they are free to run something, so that a script which
//! holds its thread gets no new neighbours and no call waits behind it. A call that has waited 50 ms in the queue
//! means that every thread is held: another thread starts, up to a limit, and ends when it has been idle. On its
//! thread a call is a local task: while its script waits, the thread runs others.
//!
//! Each thread owns its states (`pool`). Dropping a call's future stops its script; dropping the runner stops all.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio::task::LocalSet;

use super::control::{Control, Stop, lock, run_after};
use super::error;
use super::host::ScriptSink;
use super::isolate::{Isolate, Isolation};
use super::local::limit;
use super::pool::Pool;
use super::{DEFAULT_MEMORY, DEFAULT_TIMEOUT, Script};
use crate::tool::{CallContext, ToolCall, ToolError, ToolErrorKind};

/// A call that is in the queue for this long makes another thread start.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);
/// A thread beyond the usual number ends after this long without a call.
pub(super) const IDLE: Duration = Duration::from_secs(10);
/// Most calls in the queue.
pub(super) const MAX_QUEUE: usize = 10_000;
/// Most calls that one thread runs at a time: each holds a state of its own.
const MAX_PER_THREAD: usize = 256;
/// Stack of a script thread: Luau bounds its own depth of C calls at 200.
pub(super) const STACK: usize = 4 << 20;

/// How a [`ScriptRunner`] works.
#[derive(Debug, Clone)]
pub struct RunnerOptions {
    /// Threads that run scripts; by default one for each processor.
    pub threads: usize,
    /// Most threads there may be while scripts hold theirs.
    pub max_threads: usize,
    /// The time limit of a call that neither its caller nor its script limits.
    pub timeout: Duration,
    /// The memory limit, in bytes, of a call whose script does not say.
    pub memory: u64,
    /// Where log lines and progress go.
    pub sink: ScriptSink,
    /// Whether calls run on threads of this process or in processes of their own, of which there are then as many as
    /// there would be threads.
    pub isolation: Isolation,
}

impl Default for RunnerOptions {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            threads,
            max_threads: threads + 62,
            timeout: DEFAULT_TIMEOUT,
            memory: DEFAULT_MEMORY,
            sink: ScriptSink::default(),
            isolation: Isolation::Threads,
        }
    }
}

/// Runs scripts on threads of its own, or in processes of its own; cheap to call from any executor.
pub struct ScriptRunner {
    shared: Arc<Shared>,
    /// In place of threads.
    isolate: Option<Arc<Isolate>>,
}

struct Shared {
    options: RunnerOptions,
    state: Mutex<State>,
    /// Whether a look at the queue is due.
    look_due: AtomicBool,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: BTreeMap<u64, Thread>,
    next_thread: u64,
    /// The calls that threads have taken, to be stopped with the runner.
    running: BTreeMap<u64, Arc<Control>>,
    next_call: u64,
    closed: bool,
}

struct Thread {
    wake: Arc<Notify>,
    /// Whether it waits for a call, having been told of none.
    idle: bool,
}

struct Job {
    /// Since when it waits in the queue.
    since: Instant,
    script: Arc<Script>,
    call: ToolCall,
    context: CallContext,
    control: Arc<Control>,
}

impl ScriptRunner {
    /// A runner; its threads or processes start with its first call.
    pub fn new(options: RunnerOptions) -> Self {
        let isolate = match &options.isolation {
            Isolation::Threads => None,
            Isolation::Processes(processes) => Some(Isolate::new(
                processes.clone(),
                options.threads,
                options.max_threads,
                options.memory,
                options.sink.clone(),
            )),
        };
        Self {
            isolate,
            shared: Arc::new(Shared { options, state: Mutex::default(), look_due: AtomicBool::new(false) }),
        }
    }

    /// Runs `call` in `script` to its end. The arguments are valid under the tool's schema. Dropping the future stops
    /// the script. The time limit is the context's, else the script's, else the runner's; it runs from the script's
    /// start, not while the call is queued.
    ///
    /// # Errors
    /// However the call failed.
    pub fn call(
        &self,
        script: Arc<Script>,
        call: ToolCall,
        context: CallContext,
    ) -> BoxFuture<'static, Result<Value, ToolError>> {
        let timeout = limit(&script, &context, self.shared.options.timeout);
        let memory = script.memory.unwrap_or(self.shared.options.memory);
        if let Some(isolate) = &self.isolate {
            let isolate = Arc::clone(isolate);
            return Box::pin(async move {
                let file = script.file.clone();
                let answer = isolate.call(script, call, context, timeout).await;
                answer.map_err(|error| error::placed(error, &file, memory))
            });
        }
        let shared = Arc::clone(&self.shared);
        let (sender, receiver) = oneshot::channel();
        let control = Control::new(timeout, Some(sender));
        // Before it waits for its turn: what runs meanwhile may move links.
        control.pins(&script.permissions);
        Box::pin(async move {
            let _canceller = CancelOnDrop(Arc::clone(&control));
            let file = script.file.clone();
            submit(&shared, Job { since: Instant::now(), script, call, context, control })?;
            let answer = receiver.await.unwrap_or_else(|_| {
                Err(ToolError::new(
                    ToolErrorKind::Internal,
                    "the thread that ran the script was lost; this is a bug",
                ))
            });
            answer.map_err(|error| error::placed(error, &file, memory))
        })
    }
}

impl Drop for ScriptRunner {
    fn drop(&mut self) {
        if let Some(isolate) = &self.isolate {
            isolate.close();
        }
        let mut state = lock(&self.shared.state);
        state.closed = true;
        let waiting = std::mem::take(&mut state.queue);
        let running = std::mem::take(&mut state.running);
        for thread in state.threads.values() {
            thread.wake.notify_one();
        }
        drop(state);
        for control in waiting.into_iter().map(|job| job.control).chain(running.into_values()) {
            control.stop(Stop::Canceled);
            control.answer(Err(closed()));
        }
    }
}

impl fmt::Debug for ScriptRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptRunner").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

struct CancelOnDrop(Arc<Control>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // After its answer a call has ended and this does nothing.
        self.0.stop(Stop::Canceled);
    }
}

fn submit(shared: &Arc<Shared>, job: Job) -> Result<(), ToolError> {
    let mut state = lock(&shared.state);
    if state.closed {
        return Err(closed());
    }
    if state.queue.len() >= MAX_QUEUE {
        return Err(queue_is_full());
    }
    state.queue.push_back(job);
    wake_one(shared, &mut state)?;
    drop(state);
    look_later(shared, PATIENCE);
    Ok(())
}

/// Wakes an idle thread for the queue's calls; starts one while there are fewer than usual.
fn wake_one(shared: &Arc<Shared>, state: &mut State) -> Result<(), ToolError> {
    if let Some(thread) = state.threads.values_mut().find(|thread| thread.idle) {
        thread.idle = false;
        thread.wake.notify_one();
        return Ok(());
    }
    if state.threads.len() < shared.options.threads.max(1) {
        return start_thread(shared, state);
    }
    // All are busy. Those whose scripts wait will see the call at once, the others when they are free.
    for thread in state.threads.values() {
        thread.wake.notify_one();
    }
    Ok(())
}

/// Has the watchdog look at the queue after so long.
fn look_later(shared: &Arc<Shared>, delay: Duration) {
    if shared.look_due.swap(true, Ordering::AcqRel) {
        return;
    }
    let weak = Arc::downgrade(shared);
    run_after(delay, move || {
        let Some(shared) = weak.upgrade() else { return };
        shared.look_due.store(false, Ordering::Release);
        if let Some(delay) = look(&shared) {
            look_later(&shared, delay);
        }
    });
}

/// Starts a thread where the oldest call has waited for [`PATIENCE`]; when to look again. A call that has only just come
/// is no sign that threads are held: of many short ones a look nearly always meets one.
fn look(shared: &Arc<Shared>) -> Option<Duration> {
    let mut state = lock(&shared.state);
    if state.closed {
        return None;
    }
    let patience = PATIENCE.saturating_sub(state.queue.front()?.since.elapsed());
    if !patience.is_zero() {
        return Some(patience);
    }
    // A thread that was woken may have begun to run a script of its own again.
    for thread in state.threads.values() {
        thread.wake.notify_one();
    }
    if state.threads.len() < shared.options.max_threads
        && let Err(error) = start_thread(shared, &mut state)
    {
        tracing::warn!(%error, "no further thread for scripts");
    }
    Some(PATIENCE)
}

fn start_thread(shared: &Arc<Shared>, state: &mut State) -> Result<(), ToolError> {
    let id = state.next_thread;
    state.next_thread += 1;
    let wake = Arc::new(Notify::new());
    let (worker, notified) = (Arc::clone(shared), Arc::clone(&wake));
    std::thread::Builder::new()
        .name(format!("deftool-script-{id}"))
        .stack_size(STACK)
        .spawn(move || {
            // Also when a panic unwinds the thread.
            let _left = Leave { shared: Arc::clone(&worker), id };
            run_thread(&worker, id, &notified);
        })
        .map_err(|error| {
            ToolError::new(ToolErrorKind::Internal, format!("no thread to run the script: {error}"))
        })?;
    state.threads.insert(id, Thread { wake, idle: false });
    Ok(())
}

struct Leave {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Leave {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.threads.remove(&self.id);
        // A call that came while this thread left.
        if !state.queue.is_empty() && !state.closed && state.threads.is_empty() {
            drop(start_thread(&self.shared, &mut state));
        }
    }
}

fn run_thread(shared: &Arc<Shared>, id: u64, wake: &Notify) {
    let runtime =
        match tokio::runtime::Builder::new_current_thread().enable_time().max_blocking_threads(4).build() {
            Ok(runtime) => runtime,
            Err(error) => {
                let waiting = std::mem::take(&mut lock(&shared.state).queue);
                for job in waiting {
                    let message = format!("a thread for scripts could not start its timers: {error}");
                    job.control.answer(Err(ToolError::new(ToolErrorKind::Internal, message)));
                }
                return;
            }
        };
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, take_calls(shared, id, wake));
    drop(tasks);
    // A blocked file read must not hold the process.
    runtime.shutdown_background();
}

enum Taken {
    Job(Box<Job>, u64),
    Nothing,
    Closed,
}

async fn take_calls(shared: &Arc<Shared>, id: u64, wake: &Notify) {
    let pool = Rc::new(RefCell::new(Pool::new(shared.options.sink.clone(), shared.options.memory)));
    let running = Rc::new(Cell::new(0_usize));
    loop {
        match take(shared, id, running.get()) {
            Taken::Job(job, call) => {
                running.set(running.get() + 1);
                let ended =
                    Ended { shared: Arc::clone(shared), call, running: Rc::clone(&running), thread: id };
                let pool = Rc::clone(&pool);
                tokio::task::spawn_local(async move {
                    let _ended = ended;
                    run_job(*job, &pool).await;
                });
                // Runs the new call up to its first wait before the next is taken.
                tokio::task::yield_now().await;
            }
            Taken::Closed => return,
            Taken::Nothing => {
                let idle = running.get() == 0;
                if tokio::time::timeout(IDLE, wake.notified()).await.is_err() && idle && running.get() == 0 {
                    pool.borrow_mut().drop_unused();
                    if may_leave(shared, id) {
                        return;
                    }
                }
            }
        }
    }
}

struct Ended {
    shared: Arc<Shared>,
    call: u64,
    running: Rc<Cell<usize>>,
    thread: u64,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let running = self.running.replace(self.running.get().saturating_sub(1));
        let mut state = lock(&self.shared.state);
        state.running.remove(&self.call);
        if running >= MAX_PER_THREAD
            && let Some(thread) = state.threads.get(&self.thread)
        {
            // It was full and has stopped looking at the queue.
            thread.wake.notify_one();
        }
    }
}

fn take(shared: &Arc<Shared>, id: u64, running: usize) -> Taken {
    let mut state = lock(&shared.state);
    if state.closed {
        return Taken::Closed;
    }
    let job = if running < MAX_PER_THREAD { state.queue.pop_front() } else { None };
    if let Some(thread) = state.threads.get_mut(&id) {
        thread.idle = job.is_none() && running < MAX_PER_THREAD;
    }
    let Some(job) = job else { return Taken::Nothing };
    if !state.queue.is_empty()
        && let Err(error) = wake_one(shared, &mut state)
    {
        tracing::warn!(%error, "no further thread for scripts");
    }
    let call = state.next_call;
    state.next_call += 1;
    state.running.insert(call, Arc::clone(&job.control));
    Taken::Job(Box::new(job), call)
}

/// Whether a thread that was idle is one too many; then it is forgotten.
fn may_leave(shared: &Shared, id: u64) -> bool {
    let mut state = lock(&shared.state);
    if state.threads.len() > shared.options.threads.max(1) && state.queue.is_empty() {
        state.threads.remove(&id);
        return true;
    }
    false
}

async fn run_job(job: Job, pool: &RefCell<Pool>) {
    let Job { since: _, script, call, context, control } = job;
    if let Some(reason) = control.stopped() {
        return control.answer(Err(control.error(reason)));
    }
    let taken = pool.borrow_mut().take(&script);
    let answer = match taken {
        Err(error) => Err(error),
        Ok(mut vm) => {
            let (answer, reusable) = vm.call(&call.arguments, context, &control).await;
            if reusable {
                pool.borrow_mut().give_back(&script, vm);
            }
            answer
        }
    };
    control.answer(answer);
}

pub(super) fn closed() -> ToolError {
    ToolError::new(ToolErrorKind::Canceled, "the script runner has ended")
}

pub(super) fn queue_is_full() -> ToolError {
    let message = format!("{MAX_QUEUE} calls of scripts are waiting already");
    ToolError::new(ToolErrorKind::Internal, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_starts_for_a_call_that_waited_and_not_for_one_that_came() {
        let job = |since| Job {
            since,
            script: Arc::new(Script::new("f", "f.lua", "return function() end")),
            call: ToolCall { id: String::new(), name: String::from("f"), arguments: serde_json::Map::new() },
            context: CallContext::default(),
            control: Control::new(PATIENCE, None),
        };
        let options = RunnerOptions { threads: 1, max_threads: 3, ..RunnerOptions::default() };
        let shared = Shared { options, state: Mutex::default(), look_due: AtomicBool::new(false) };
        let shared = Arc::new(shared);
        assert_eq!(look(&shared), None, "nothing waits");
        let held = Thread { wake: Arc::default(), idle: false };
        lock(&shared.state).threads.insert(100, held);
        // However slow this machine is, it has not waited.
        lock(&shared.state).queue.push_back(job(Instant::now() + IDLE));
        assert_eq!(look(&shared), Some(PATIENCE));
        assert_eq!(lock(&shared.state).next_thread, 0);
        lock(&shared.state).queue.push_front(job(Instant::now().checked_sub(PATIENCE).unwrap()));
        assert_eq!(look(&shared), Some(PATIENCE));
        assert_eq!(lock(&shared.state).next_thread, 1);
        lock(&shared.state).closed = true;
    }
}
