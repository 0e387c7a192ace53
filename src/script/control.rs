//! One call's life from outside its thread: its deadline, its stop, its answer; and the watchdog that enforces them.
//!
//! A [`Control`] is shared by the caller, the thread that runs the script and the watchdog. Whoever stops the call
//! first names the reason; the script is then interrupted wherever it is, spinning or waiting. The watchdog is one
//! thread of the process, asleep until the earliest deadline: it stops a call at its deadline and, should the
//! script's thread be held by something that cannot be interrupted, answers the caller itself shortly after. A top level
//! is limited in what its thread works, which only that thread can tell: the watchdog has it look now and then.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use serde_json::Value;
use tokio::sync::oneshot;

use super::interrupt::Switch;
use super::permission::{Permissions, Pins};
use crate::tool::{ToolError, ToolErrorKind};

/// The longest [`grace`].
pub(crate) const MAX_GRACE: Duration = Duration::from_millis(500);

/// How long after its deadline a call of this time limit may take to say where it was stopped, before it is answered for
/// or killed: a busy machine needs a while to give a thread its turn. In all no more than twice the limit, or little.
pub(super) fn grace(limit: Duration) -> Duration {
    limit.clamp(Duration::from_millis(50), MAX_GRACE)
}

/// A top level that nothing interrupts is stopped after this many times its limit.
const LOAD_PATIENCE: u32 = 8;

/// Between two looks at what a top level has worked. The first is where its work is counted from: most end before.
const LOAD_LOOK: Duration = Duration::from_millis(25);

/// Between two looks at the memory of a call that is metered.
const LOOK: Duration = Duration::from_millis(1);

/// Why a call is stopped from outside its script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stop {
    /// The deadline passed.
    Timeout = 1,
    /// The top level ran longer than it may.
    SlowLoad = 2,
    /// The memory limit was reached.
    Memory = 3,
    /// The caller went away, or the runner did.
    Canceled = 4,
}

/// When a call is to be stopped, and why then.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    /// As [`now`] counts.
    at: u64,
    reason: Stop,
    /// From when on the script's thread is asked to look by itself.
    look: u64,
}

impl Deadline {
    /// When there is something to do.
    fn next(self) -> u64 {
        self.at.min(self.look)
    }
}

/// The answer of a call.
pub(super) type Answer = Result<Value, ToolError>;

/// The shared half of a running call.
#[derive(Debug)]
pub(super) struct Control {
    /// A [`Stop`], or 0.
    stop: AtomicU8,
    deadline: Mutex<Deadline>,
    /// The time limit, for the message.
    timeout: Duration,
    /// When the watchdog has this call's entry; changed under the watchdog's lock.
    watched: AtomicU64,
    switch: Arc<Switch>,
    waker: AtomicWaker,
    answer: Mutex<Option<oneshot::Sender<Answer>>>,
    leashes: Mutex<Vec<Weak<dyn Leash>>>,
    /// Where its grants led when it was asked for.
    pins: OnceLock<Arc<Pins>>,
}

/// Something outside the script that ends with its call, at once and from whatever thread stops it: the script's own
/// may be held, and the process may be about to end.
pub(super) trait Leash: fmt::Debug + Send + Sync {
    /// Ends it. Must not block.
    fn pull(&self);
}

impl Control {
    /// A call that has not started, with a time limit of `timeout`; its answer goes to `answer`, if anywhere.
    pub(super) fn new(timeout: Duration, answer: Option<oneshot::Sender<Answer>>) -> Arc<Self> {
        Arc::new(Self {
            stop: AtomicU8::new(0),
            deadline: Mutex::new(Deadline { at: u64::MAX, reason: Stop::Timeout, look: u64::MAX }),
            timeout,
            watched: AtomicU64::new(UNWATCHED),
            switch: Arc::default(),
            waker: AtomicWaker::new(),
            answer: Mutex::new(answer),
            leashes: Mutex::default(),
            pins: OnceLock::new(),
        })
    }

    /// Where the grants of the call, `permissions`, led when this was first asked.
    pub(super) fn pins(&self, permissions: &Permissions) -> Arc<Pins> {
        Arc::clone(self.pins.get_or_init(|| Arc::new(Pins::of(permissions))))
    }

    /// Stops the call. The first reason stands.
    pub(super) fn stop(&self, reason: Stop) {
        let first = self.stop.compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if first {
            self.switch.throw();
            self.waker.wake();
            self.pull();
        }
    }

    /// Has `leash` pulled when the call ends.
    pub(super) fn hold(&self, leash: Weak<dyn Leash>) {
        let mut leashes = lock(&self.leashes);
        leashes.retain(|leash| leash.strong_count() > 0);
        leashes.push(leash);
        drop(leashes);
        if self.stopped().is_some() {
            self.pull();
        }
    }

    /// Ends what hangs on the call.
    pub(super) fn pull(&self) {
        let leashes = std::mem::take(&mut *lock(&self.leashes));
        for leash in leashes.iter().filter_map(Weak::upgrade) {
            leash.pull();
        }
    }

    /// Why the call is being stopped, if it is.
    pub(super) fn stopped(&self) -> Option<Stop> {
        Stop::of(self.stop.load(Ordering::Acquire))
    }

    /// What interrupts the script when the call is stopped.
    pub(super) fn switch(&self) -> &Arc<Switch> {
        &self.switch
    }

    /// Has `waker` woken when the call is stopped.
    pub(super) fn register(&self, waker: &std::task::Waker) {
        self.waker.register(waker);
    }

    /// Seconds until the deadline; 0 when it has passed.
    pub(super) fn seconds_left(&self) -> f64 {
        Duration::from_nanos(lock(&self.deadline).at.saturating_sub(now())).as_secs_f64()
    }

    /// Starts the clock of the function: the call is stopped at its time limit.
    pub(super) fn limit_call(&self, since: u64) {
        let at = since.saturating_add(nanos(self.timeout));
        *lock(&self.deadline) = Deadline { at, reason: Stop::Timeout, look: u64::MAX };
    }

    /// Starts the clock of the top level.
    pub(super) fn limit_load(&self, since: u64) {
        let limit = super::TOP_LEVEL_LIMIT;
        if self.timeout <= limit {
            return self.limit_call(since);
        }
        let patience = limit * LOAD_PATIENCE;
        let (all, reason) =
            if self.timeout <= patience { (self.timeout, Stop::Timeout) } else { (patience, Stop::SlowLoad) };
        let at = since.saturating_add(nanos(all));
        *lock(&self.deadline) = Deadline { at, reason, look: since.saturating_add(nanos(LOAD_LOOK)) };
    }

    /// Whether it is time to look at what the top level has worked.
    pub(super) fn is_load_looked_at(&self) -> bool {
        lock(&self.deadline).look <= now()
    }

    /// Sends the answer, unless one was sent.
    pub(super) fn answer(&self, answer: Answer) {
        let sender = lock(&self.answer).take();
        if let Some(sender) = sender {
            // A receiver that is gone has cancelled the call; nobody wants the answer.
            drop(sender.send(answer));
        }
    }

    /// The error that a call stopped for `reason` ends with.
    pub(super) fn error(&self, reason: Stop) -> ToolError {
        match reason {
            Stop::Timeout => timed_out(self.timeout),
            Stop::SlowLoad => ToolError::new(
                ToolErrorKind::Load,
                format!("the script's top level ran longer than {}", human(super::TOP_LEVEL_LIMIT)),
            ),
            Stop::Memory => {
                ToolError::new(ToolErrorKind::Memory, "the script was stopped at its memory limit")
            }
            Stop::Canceled => ToolError::new(ToolErrorKind::Canceled, "the call was cancelled"),
        }
    }
}

impl Stop {
    fn of(code: u8) -> Option<Self> {
        [Self::Timeout, Self::SlowLoad, Self::Memory, Self::Canceled]
            .into_iter()
            .find(|reason| *reason as u8 == code)
    }
}

/// The error of a call that reached its `limit`.
pub(super) fn timed_out(limit: Duration) -> ToolError {
    ToolError::new(
        ToolErrorKind::Timeout,
        format!("the script was stopped at its time limit of {}", human(limit)),
    )
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds since the process first asked.
pub(super) fn now() -> u64 {
    static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);
    // 584 years.
    EPOCH.elapsed().as_nanos() as u64
}

/// How long this thread has worked, waiting for its turn not counted; where the system does not tell, how long it is there.
pub(super) fn thread_time() -> Duration {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
    }
    #[cfg(not(unix))]
    Duration::from_nanos(now())
}

/// In place of a time: the watchdog has no entry.
const UNWATCHED: u64 = u64::MAX;

/// The thread that wakes at deadlines.
static WATCHDOG: LazyLock<Watchdog> = LazyLock::new(Watchdog::start);

struct Watchdog {
    state: Arc<(Mutex<Watch>, Condvar)>,
}

#[derive(Default)]
struct Watch {
    due: BTreeMap<(u64, u64), Due>,
    next_id: u64,
    /// When the thread will wake by itself.
    wakes_at: u64,
}

enum Due {
    Call(Arc<Control>),
    /// Run once and forgotten; must be quick.
    Once(Box<dyn FnOnce() + Send>),
}

/// Keeps a call watched until dropped.
pub(super) struct Watched {
    control: Arc<Control>,
    id: u64,
}

impl Watched {
    /// Watches `control`, whose deadline is set.
    pub(super) fn start(control: &Arc<Control>) -> Self {
        let due = lock(&control.deadline).next();
        let mut watch = lock(&WATCHDOG.state.0);
        let id = watch.insert(due, Due::Call(Arc::clone(control)));
        control.watched.store(due, Ordering::Release);
        WATCHDOG.wake_by(&watch, due);
        Self { control: Arc::clone(control), id }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut watch = lock(&WATCHDOG.state.0);
        let due = self.control.watched.swap(UNWATCHED, Ordering::AcqRel);
        watch.due.remove(&(due, self.id));
    }
}

/// Has the state of `control` look at its memory every millisecond, until the call has ended.
pub(super) fn keep_looking(control: Weak<Control>) {
    run_after(LOOK, move || {
        if let Some(running) = control.upgrade() {
            running.switch.nudge();
            keep_looking(control);
        }
    });
}

/// Runs `action` on the watchdog's thread after `delay`. It must not block.
pub(super) fn run_after(delay: Duration, action: impl FnOnce() + Send + 'static) {
    let due = now().saturating_add(nanos(delay));
    let mut watch = lock(&WATCHDOG.state.0);
    watch.insert(due, Due::Once(Box::new(action)));
    WATCHDOG.wake_by(&watch, due);
}

impl Watch {
    fn insert(&mut self, due: u64, entry: Due) -> u64 {
        self.next_id += 1;
        self.due.insert((due, self.next_id), entry);
        self.next_id
    }
}

impl Watchdog {
    fn start() -> Self {
        let mut first = Watch { wakes_at: u64::MAX, ..Watch::default() };
        // Never due, and so always there: a map that empties with each call would be allocated anew for the next.
        first.insert(u64::MAX, Due::Once(Box::new(|| {})));
        let state = Arc::new((Mutex::new(first), Condvar::new()));
        let shared = Arc::clone(&state);
        let spawned = std::thread::Builder::new()
            .name(String::from("deftool-watchdog"))
            .spawn(move || watch(&shared.0, &shared.1));
        if let Err(error) = spawned {
            // A process that cannot start a thread cannot run scripts either: their threads fail too.
            tracing::error!(%error, "the watchdog of scripts could not start: no script will be stopped at its limit");
        }
        Self { state }
    }

    /// Wakes the thread if it would sleep past `due`. A call that starts later than another ends later too as a
    /// rule, so that most calls need no wake.
    fn wake_by(&self, watch: &MutexGuard<'_, Watch>, due: u64) {
        if due < watch.wakes_at {
            self.state.1.notify_one();
        }
    }
}

fn watch(state: &Mutex<Watch>, wake: &Condvar) {
    let mut watch = lock(state);
    loop {
        let now = now();
        let Some((&(due, id), _)) = watch.due.first_key_value() else {
            watch.wakes_at = u64::MAX;
            watch = wake.wait(watch).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        if due > now {
            watch.wakes_at = due;
            let pause = Duration::from_nanos(due - now);
            watch = wake.wait_timeout(watch, pause).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        match watch.due.remove(&(due, id)) {
            None => {}
            Some(Due::Once(action)) => {
                drop(watch);
                action();
                watch = lock(state);
            }
            Some(Due::Call(control)) => {
                // Waking may run what a foreign executor likes: not under the lock.
                drop(watch);
                let again = fire(&control, now);
                watch = lock(state);
                if let Some(later) = again
                    && control.watched.load(Ordering::Acquire) != UNWATCHED
                {
                    control.watched.store(later, Ordering::Release);
                    watch.due.insert((later, id), Due::Call(control));
                }
            }
        }
    }
}

/// Enforces `control` at `now`; when to look again.
fn fire(control: &Control, now: u64) -> Option<u64> {
    let deadline @ Deadline { at, reason, .. } = *lock(&control.deadline);
    if deadline.next() > now {
        return Some(deadline.next());
    }
    if at > now {
        control.switch.nudge();
        return Some(at.min(now.saturating_add(nanos(LOAD_LOOK))));
    }
    control.stop(reason);
    let answer_at = at.saturating_add(nanos(grace(control.timeout)));
    if now < answer_at {
        return Some(answer_at);
    }
    let reason = control.stopped().unwrap_or(reason);
    control.answer(Err(control.error(reason)));
    None
}

/// Locks, whatever a panicking thread left: no invariant spans these locks.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `1.5 s` or `250 ms`.
fn human(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{} s", duration.as_secs_f64())
    }
}
