//! Runs scripts on a pool of threads. [`isolate`](crate::isolate) runs them in processes.
//!
//! All calls wait in one queue. A thread takes calls from it whenever it is free, so no call waits behind a script that
//! blocks its thread. If a call has waited 50 ms in the queue, all threads are blocked: another thread is started, up
//! to a limit, and exits when it has been idle for some time. On its thread a call is a local task: while its script
//! waits, the thread runs other calls.
//!
//! Each thread owns its Lua states (`pool`). Dropping a call's future stops its script; dropping the runner stops all.

pub(crate) mod local;
pub(crate) mod pool;
pub(crate) mod queue;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, ToolOutput};
use deftool_process::lock;
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, oneshot};
use tokio::task::LocalSet;

pub use local::LocalVm;

use self::local::limit;
use self::pool::Pool;
use self::queue::{IDLE_LIMIT, MAX_QUEUE, MAX_QUEUE_WAIT, closed, queue_is_full};
use crate::control::{Control, Stop, run_after};
use crate::error;
use crate::events::ScriptSink;
use crate::host::command;
use crate::isolate::{Isolation, ProcessPool};
use crate::limits::{DEFAULT_MEMORY, DEFAULT_TIMEOUT, STACK_SIZE};
use crate::script::Script;

/// Maximum number of simultaneous calls per thread. Each has its own Lua state.
const MAX_PER_THREAD: usize = 256;

/// The default of [`RunnerOptions::max_threads`].
const MAX_THREADS: usize = 256;

/// The options of a [`ScriptRunner`].
#[derive(Debug, Clone)]
pub struct RunnerOptions {
    /// The usual number of threads. The default is one per processor.
    pub threads: usize,
    /// Maximum number of threads, reached while scripts block theirs.
    pub max_threads: usize,
    /// The time limit of a call, if neither its context nor its script sets one.
    pub timeout: Duration,
    /// The memory limit of a call, in bytes, if its script sets none.
    pub memory: u64,
    /// The destination of log lines and progress.
    pub sink: ScriptSink,
    /// Whether calls run on threads of this process or in child processes. The limits for threads then apply to the
    /// number of processes.
    pub isolation: Isolation,
}

impl Default for RunnerOptions {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            threads,
            max_threads: MAX_THREADS.max(threads),
            timeout: DEFAULT_TIMEOUT,
            memory: DEFAULT_MEMORY,
            sink: ScriptSink::default(),
            isolation: Isolation::Threads,
        }
    }
}

/// A runner of scripts on its own threads or in child processes. Can be called from any executor.
pub struct ScriptRunner {
    shared: Arc<Shared>,
    /// The child processes, if they are used instead of threads.
    processes: Option<Arc<ProcessPool>>,
}

struct Shared {
    options: RunnerOptions,
    state: Mutex<State>,
    /// Whether a check of the queue is scheduled.
    is_check_scheduled: AtomicBool,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: BTreeMap<u64, Thread>,
    next_thread: u64,
    /// The running calls, which are stopped with the runner.
    running: BTreeMap<u64, Arc<Control>>,
    next_call: u64,
    closed: bool,
}

struct Thread {
    wake: Arc<Notify>,
    /// Whether the thread waits for a call and has not been woken.
    idle: bool,
    /// The time at which the thread last looked for a call: it cannot while a script blocks it.
    looked: Instant,
}

struct Job {
    /// The time at which the call was added to the queue.
    since: Instant,
    script: Arc<Script>,
    call: ToolCall,
    context: CallContext,
    control: Arc<Control>,
}

impl ScriptRunner {
    /// Creates a runner. Its threads or processes are started when they are needed.
    pub fn new(options: RunnerOptions) -> Self {
        let processes = match &options.isolation {
            Isolation::Threads => None,
            Isolation::Processes(processes) => Some(ProcessPool::new(
                processes.clone(),
                options.threads,
                options.max_threads,
                options.memory,
                options.sink.clone(),
            )),
        };
        Self {
            processes,
            shared: Arc::new(Shared {
                options,
                state: Mutex::default(),
                is_check_scheduled: AtomicBool::new(false),
            }),
        }
    }

    /// Runs `call` in `script` to its end. The arguments must be valid under the tool's schema. Dropping the future
    /// stops the script. The time limit is the context's, else the script's, else the runner's. It starts when the
    /// script starts, not while the call is queued.
    ///
    /// # Errors
    /// When the call fails.
    pub fn call(
        &self,
        script: Arc<Script>,
        call: ToolCall,
        context: CallContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let timeout = limit(&script, &context, self.shared.options.timeout);
        let memory = script.memory.unwrap_or(self.shared.options.memory);
        // A command is not Lua, and its program runs in a process of its own.
        if let Some(pool) = self.processes.as_ref().filter(|_| script.command.is_none()) {
            let pool = Arc::clone(pool);
            return Box::pin(async move {
                let file = script.file.clone();
                let answer = pool.call(script, call, context, timeout).await;
                answer.map_err(|error| error::with_location(error, &file, memory))
            });
        }
        let shared = Arc::clone(&self.shared);
        let (sender, receiver) = oneshot::channel();
        let control = Control::new(timeout, Some(sender));
        // Before the call is queued: other calls that run in the meantime may move links.
        control.pinned_paths(&script.permissions);
        Box::pin(async move {
            let _canceller = CancelOnDrop(Arc::clone(&control));
            let file = script.file.clone();
            submit(&shared, Job { since: Instant::now(), script, call, context, control })?;
            let answer = receiver.await.unwrap_or_else(|_| {
                Err(ToolError::new(
                    ToolErrorKind::Internal,
                    "the thread that ran the script ended unexpectedly; this is a bug",
                ))
            });
            answer.map_err(|error| error::with_location(error, &file, memory))
        })
    }
}

impl Drop for ScriptRunner {
    fn drop(&mut self) {
        if let Some(pool) = &self.processes {
            pool.close();
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
        // Has no effect on a call that was answered.
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
    wake_one(shared, state)?;
    schedule_queue_check(shared, MAX_QUEUE_WAIT);
    Ok(())
}

/// Wakes an idle thread for the calls in the queue, or starts a thread if there are fewer than the usual number.
fn wake_one(shared: &Arc<Shared>, mut state: MutexGuard<'_, State>) -> Result<(), ToolError> {
    if let Some(thread) = state.threads.values_mut().find(|thread| thread.idle) {
        thread.idle = false;
        let wake = Arc::clone(&thread.wake);
        // The thread begins by locking the state.
        drop(state);
        wake.notify_one();
        return Ok(());
    }
    if state.threads.len() < shared.options.threads.max(1) {
        return start_thread(shared, &mut state);
    }
    // All threads are busy. A thread on which all scripts wait takes the call at once. Any other thread takes it when
    // it is free.
    for thread in state.threads.values() {
        thread.wake.notify_one();
    }
    Ok(())
}

/// Makes the watchdog check the queue after `delay`.
fn schedule_queue_check(shared: &Arc<Shared>, delay: Duration) {
    if shared.is_check_scheduled.swap(true, Ordering::AcqRel) {
        return;
    }
    let weak = Arc::downgrade(shared);
    run_after(delay, move || {
        let Some(shared) = weak.upgrade() else { return };
        shared.is_check_scheduled.store(false, Ordering::Release);
        if let Some(delay) = check_queue(&shared) {
            schedule_queue_check(&shared, delay);
        }
    });
}

/// Starts a thread for each one that a script blocks, if the oldest call has waited for [`MAX_QUEUE_WAIT`] and less than the
/// usual number of threads take calls. Returns the delay until the next check. The age of the call matters: with many short
/// calls, nearly every check finds one in the queue.
fn check_queue(shared: &Arc<Shared>) -> Option<Duration> {
    let mut state = lock(&shared.state);
    if state.closed {
        return None;
    }
    let left = MAX_QUEUE_WAIT.saturating_sub(state.queue.front()?.since.elapsed());
    if !left.is_zero() {
        return Some(left);
    }
    // A thread that was woken before may have continued one of its own scripts instead.
    for thread in state.threads.values() {
        thread.wake.notify_one();
    }
    let is_blocked = |thread: &&Thread| !thread.idle && thread.looked.elapsed() >= MAX_QUEUE_WAIT;
    let blocked = state.threads.values().filter(is_blocked).count();
    if state.threads.len() - blocked >= shared.options.threads.max(1) {
        return Some(MAX_QUEUE_WAIT);
    }
    let most = shared.options.max_threads.saturating_sub(state.threads.len());
    for _ in 0..blocked.min(state.queue.len()).min(most) {
        if let Err(error) = start_thread(shared, &mut state) {
            tracing::warn!(%error, "cannot start another thread for scripts");
            break;
        }
    }
    Some(MAX_QUEUE_WAIT)
}

fn start_thread(shared: &Arc<Shared>, state: &mut State) -> Result<(), ToolError> {
    let id = state.next_thread;
    state.next_thread += 1;
    let wake = Arc::new(Notify::new());
    let (worker, notified) = (Arc::clone(shared), Arc::clone(&wake));
    std::thread::Builder::new()
        .name(format!("deftool-script-{id}"))
        .stack_size(STACK_SIZE)
        .spawn(move || {
            // Dropped also when a panic unwinds the thread.
            let _exit = ThreadExit { shared: Arc::clone(&worker), id };
            run_thread(&worker, id, &notified);
        })
        .map_err(|error| {
            ToolError::new(ToolErrorKind::Internal, format!("cannot start a thread for the script: {error}"))
        })?;
    state.threads.insert(id, Thread { wake, idle: false, looked: Instant::now() });
    Ok(())
}

/// Guard that removes a thread from the list when the thread exits.
struct ThreadExit {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for ThreadExit {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.threads.remove(&self.id);
        // A call was queued while this thread exited.
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
                    let message = format!("cannot start the async runtime: {error}");
                    job.control.answer(Err(ToolError::new(ToolErrorKind::Internal, message)));
                }
                return;
            }
        };
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, take_calls(shared, id, wake));
    drop(tasks);
    // A blocked file read must not delay the exit of the process.
    runtime.shutdown_background();
}

/// The next job for a thread.
enum Next {
    Job(Box<Job>, u64),
    Nothing,
    Closed,
}

async fn take_calls(shared: &Arc<Shared>, id: u64, wake: &Notify) {
    let pool = Rc::new(RefCell::new(Pool::new(shared.options.sink.clone(), shared.options.memory)));
    let running = Rc::new(Cell::new(0_usize));
    loop {
        match take(shared, id, running.get()) {
            Next::Job(job, call) => {
                running.set(running.get() + 1);
                let running_call = RunningCall {
                    shared: Arc::clone(shared),
                    call,
                    running: Rc::clone(&running),
                    thread: id,
                };
                let pool = Rc::clone(&pool);
                tokio::task::spawn_local(async move {
                    let _running_call = running_call;
                    run_job(*job, &pool).await;
                });
                // Run the new call until it waits, before the next call is taken.
                tokio::task::yield_now().await;
            }
            Next::Closed => return,
            Next::Nothing => {
                let idle = running.get() == 0;
                if tokio::time::timeout(IDLE_LIMIT, wake.notified()).await.is_err()
                    && idle
                    && running.get() == 0
                {
                    pool.borrow_mut().drop_unused();
                    if try_retire(shared, id) {
                        return;
                    }
                }
            }
        }
    }
}

/// Guard of a call that a thread runs.
struct RunningCall {
    shared: Arc<Shared>,
    call: u64,
    running: Rc<Cell<usize>>,
    thread: u64,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let running = self.running.replace(self.running.get().saturating_sub(1));
        let mut state = lock(&self.shared.state);
        state.running.remove(&self.call);
        if running >= MAX_PER_THREAD
            && let Some(thread) = state.threads.get(&self.thread)
        {
            // The thread was full and took no calls from the queue.
            thread.wake.notify_one();
        }
    }
}

fn take(shared: &Arc<Shared>, id: u64, running: usize) -> Next {
    let mut state = lock(&shared.state);
    if state.closed {
        return Next::Closed;
    }
    let job = if running < MAX_PER_THREAD { state.queue.pop_front() } else { None };
    if let Some(thread) = state.threads.get_mut(&id) {
        thread.idle = job.is_none() && running < MAX_PER_THREAD;
        thread.looked = Instant::now();
    }
    let Some(job) = job else { return Next::Nothing };
    let call = state.next_call;
    state.next_call += 1;
    state.running.insert(call, Arc::clone(&job.control));
    if !state.queue.is_empty()
        && let Err(error) = wake_one(shared, state)
    {
        tracing::warn!(%error, "cannot start another thread for scripts");
    }
    Next::Job(Box::new(job), call)
}

/// Removes an idle thread from the list if there are more than the usual number. Returns whether it was removed.
fn try_retire(shared: &Shared, id: u64) -> bool {
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
    if let Some(command) = &script.command {
        return control.answer(command::call(&script, command, &call.arguments, &control).await);
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

#[cfg(test)]
mod tests {
    use deftool_lang::schema::Arguments;

    use super::*;

    #[test]
    fn a_thread_starts_only_for_a_call_that_has_waited() {
        let job = |since| Job {
            since,
            script: Arc::new(Script::new("f", "f.lua", "return function() end")),
            call: ToolCall { id: String::new(), name: String::from("f"), arguments: Arguments::default() },
            context: CallContext::default(),
            control: Control::new(MAX_QUEUE_WAIT, None),
        };
        let options = RunnerOptions { threads: 1, max_threads: 3, ..RunnerOptions::default() };
        let long_ago = Instant::now().checked_sub(MAX_QUEUE_WAIT).unwrap();
        let shared = Shared { options, state: Mutex::default(), is_check_scheduled: AtomicBool::new(false) };
        let shared = Arc::new(shared);
        assert_eq!(check_queue(&shared), None, "the queue is empty");
        let blocked = Thread { wake: Arc::default(), idle: false, looked: long_ago };
        lock(&shared.state).threads.insert(100, blocked);
        // In the future, so that it has not waited even on a slow machine.
        lock(&shared.state).queue.push_back(job(Instant::now() + IDLE_LIMIT));
        assert_eq!(check_queue(&shared), Some(MAX_QUEUE_WAIT));
        assert_eq!(lock(&shared.state).next_thread, 0);
        lock(&shared.state).queue.push_front(job(long_ago));
        assert_eq!(check_queue(&shared), Some(MAX_QUEUE_WAIT));
        assert_eq!(lock(&shared.state).next_thread, 1);
        let busy = Thread { wake: Arc::default(), idle: false, looked: Instant::now() + IDLE_LIMIT };
        lock(&shared.state).threads.insert(101, busy);
        lock(&shared.state).queue.push_front(job(long_ago));
        assert_eq!(check_queue(&shared), Some(MAX_QUEUE_WAIT));
        assert_eq!(lock(&shared.state).next_thread, 1, "another thread takes calls");
        lock(&shared.state).closed = true;
    }
}
