//! Control of a call from outside its thread: deadline, stop and answer; and the watchdog that enforces deadlines.
//!
//! A [`Control`] is shared by the caller, the thread that runs the script and the watchdog. The first stop sets the
//! reason. The script is then interrupted, whether it runs or waits. The watchdog is one thread per process, which
//! sleeps until the earliest deadline. It stops a call at its deadline. If the script's thread is blocked by something
//! that cannot be interrupted, the watchdog answers the caller itself shortly afterwards. The top level of a script has
//! a CPU time limit. Only its own thread can measure the CPU time, so the watchdog periodically makes that thread check
//! it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use deftool_lang::tool::{ToolError, ToolErrorKind, ToolOutput};
use deftool_process::lock;
use futures_util::task::AtomicWaker;
use tokio::sync::oneshot;

use super::ffi::Switch;
use super::limits::TOP_LEVEL_LIMIT;
use super::permission::{PinnedPaths, ScriptPermissions};

/// Maximum grace period of a call: the time between its deadline and the moment when it is ended from outside.
pub const MAX_GRACE: Duration = Duration::from_millis(500);

/// Returns the grace period of a call with this time limit: the time between its deadline and the moment when the
/// watchdog answers for it, or its process is killed. In this time the call reports where it was stopped; on a busy
/// machine its thread may have to wait for a processor. Equal to `limit`, but at least 50 ms and at most [`MAX_GRACE`].
pub(super) fn grace(limit: Duration) -> Duration {
    limit.clamp(Duration::from_millis(50), MAX_GRACE)
}

/// A top level is stopped after this multiple of its CPU time limit in wall-clock time.
const LOAD_WALL_CLOCK_FACTOR: u32 = 8;

/// Interval between checks of the CPU time of a top level. CPU time counts from the first check; most top levels end
/// before it.
const LOAD_CHECK_INTERVAL: Duration = Duration::from_millis(25);

/// Interval between measurements of the memory of a metered call.
const MEMORY_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The reason for stopping a call from outside its script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stop {
    /// The deadline passed.
    Timeout = 1,
    /// The top level exceeded its limit.
    SlowLoad = 2,
    /// The memory limit was reached.
    Memory = 3,
    /// The caller or the runner was dropped.
    Canceled = 4,
}

/// The time at which a call is stopped, and the reason.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    /// On the clock of [`now`].
    at: u64,
    reason: Stop,
    /// From this time on, the script's thread is interrupted for checks.
    next_check: u64,
}

impl Deadline {
    /// Returns the time of the next action.
    fn next(self) -> u64 {
        self.at.min(self.next_check)
    }
}

/// The answer of a call.
pub(super) type Answer = Result<ToolOutput, ToolError>;

/// The shared state of a running call.
#[derive(Debug)]
pub(super) struct Control {
    /// A [`Stop`], or 0.
    stop: AtomicU8,
    deadline: Mutex<Deadline>,
    /// The time limit, for the message.
    timeout: Duration,
    /// The time of this call's entry in the watchdog's schedule. Changed under the watchdog's lock.
    watched: AtomicU64,
    switch: Arc<Switch>,
    waker: AtomicWaker,
    answer: Mutex<Option<oneshot::Sender<Answer>>>,
    resources: Mutex<Vec<Weak<dyn CallResource>>>,
    /// The real paths of the granted files and folders when the call was requested.
    pinned_paths: OnceLock<Arc<PinnedPaths>>,
}

/// A resource outside the script that is aborted when the call ends. It is aborted immediately on the thread that stops
/// the call: the script's own thread may be blocked, and the process may be about to exit.
pub(super) trait CallResource: fmt::Debug + Send + Sync {
    /// Aborts the resource. Must not block.
    fn abort(&self);
}

impl Control {
    /// Creates the control of a call that has not started, with a time limit of `timeout`. Its answer is sent to
    /// `answer`.
    pub(super) fn new(timeout: Duration, answer: Option<oneshot::Sender<Answer>>) -> Arc<Self> {
        Arc::new(Self {
            stop: AtomicU8::new(0),
            deadline: Mutex::new(Deadline { at: u64::MAX, reason: Stop::Timeout, next_check: u64::MAX }),
            timeout,
            watched: AtomicU64::new(UNWATCHED),
            switch: Arc::default(),
            waker: AtomicWaker::new(),
            answer: Mutex::new(answer),
            resources: Mutex::default(),
            pinned_paths: OnceLock::new(),
        })
    }

    /// Returns the real paths of the granted files and folders at the first call of this function.
    pub(super) fn pinned_paths(&self, permissions: &ScriptPermissions) -> Arc<PinnedPaths> {
        Arc::clone(self.pinned_paths.get_or_init(|| Arc::new(PinnedPaths::of(permissions))))
    }

    /// Stops the call. Later reasons are ignored.
    pub(super) fn stop(&self, reason: Stop) {
        let first = self.stop.compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if first {
            self.switch.stop();
            self.waker.wake();
            self.abort_resources();
        }
    }

    /// Registers `resource` to be aborted when the call ends.
    pub(super) fn abort_on_end(&self, resource: Weak<dyn CallResource>) {
        let mut resources = lock(&self.resources);
        resources.retain(|resource| resource.strong_count() > 0);
        resources.push(resource);
        drop(resources);
        if self.stopped().is_some() {
            self.abort_resources();
        }
    }

    /// Aborts the resources of the call.
    pub(super) fn abort_resources(&self) {
        let resources = std::mem::take(&mut *lock(&self.resources));
        for resource in resources.iter().filter_map(Weak::upgrade) {
            resource.abort();
        }
    }

    /// Returns the reason why the call is stopped, if it is.
    pub(super) fn stopped(&self) -> Option<Stop> {
        Stop::of(self.stop.load(Ordering::Acquire))
    }

    /// Returns the switch that interrupts the script.
    pub(super) fn switch(&self) -> &Arc<Switch> {
        &self.switch
    }

    /// Registers `waker` to be woken when the call is stopped.
    pub(super) fn register(&self, waker: &std::task::Waker) {
        self.waker.register(waker);
    }

    /// Returns the seconds until the deadline, or 0 when it has passed.
    pub(super) fn seconds_left(&self) -> f64 {
        Duration::from_nanos(lock(&self.deadline).at.saturating_sub(now())).as_secs_f64()
    }

    /// Sets the deadline of the tool's function: the call's time limit after `since`.
    pub(super) fn limit_call(&self, since: u64) {
        let at = since.saturating_add(nanos(self.timeout));
        *lock(&self.deadline) = Deadline { at, reason: Stop::Timeout, next_check: u64::MAX };
    }

    /// Sets the deadline of the top level.
    pub(super) fn limit_load(&self, since: u64) {
        let limit = TOP_LEVEL_LIMIT;
        if self.timeout <= limit {
            return self.limit_call(since);
        }
        let max_wall_time = limit * LOAD_WALL_CLOCK_FACTOR;
        let (all, reason) = if self.timeout <= max_wall_time {
            (self.timeout, Stop::Timeout)
        } else {
            (max_wall_time, Stop::SlowLoad)
        };
        let at = since.saturating_add(nanos(all));
        *lock(&self.deadline) =
            Deadline { at, reason, next_check: since.saturating_add(nanos(LOAD_CHECK_INTERVAL)) };
    }

    /// Returns whether a check of the CPU time of the top level is due.
    pub(super) fn is_load_check_due(&self) -> bool {
        lock(&self.deadline).next_check <= now()
    }

    /// Sends the answer, unless one was sent already.
    pub(super) fn answer(&self, answer: Answer) {
        let sender = lock(&self.answer).take();
        if let Some(sender) = sender {
            // If the receiver was dropped, the call was cancelled.
            drop(sender.send(answer));
        }
    }

    /// Returns the error of a call that was stopped for `reason`.
    pub(super) fn error(&self, reason: Stop) -> ToolError {
        match reason {
            Stop::Timeout => timed_out(self.timeout),
            Stop::SlowLoad => ToolError::new(
                ToolErrorKind::Load,
                format!("the script's top level ran longer than {}", format_duration(TOP_LEVEL_LIMIT)),
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

/// Returns the error of a call that reached its time limit.
pub(super) fn timed_out(limit: Duration) -> ToolError {
    ToolError::new(
        ToolErrorKind::Timeout,
        format!("the script was stopped at its time limit of {}", format_duration(limit)),
    )
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the nanoseconds since the first call of this function in the process.
pub(super) fn now() -> u64 {
    static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);
    // Overflows after 584 years.
    EPOCH.elapsed().as_nanos() as u64
}

/// Returns the CPU time of this thread, or the elapsed time on systems that do not report it.
pub(super) fn thread_time() -> Duration {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
    }
    #[cfg(not(unix))]
    Duration::from_nanos(now())
}

/// Value of [`Control::watched`] without an entry.
const UNWATCHED: u64 = u64::MAX;

/// The watchdog thread.
static WATCHDOG: LazyLock<Watchdog> = LazyLock::new(Watchdog::start);

struct Watchdog {
    state: Arc<(Mutex<Schedule>, Condvar)>,
}

#[derive(Default)]
struct Schedule {
    due: BTreeMap<(u64, u64), Due>,
    next_id: u64,
    /// The time at which the thread will wake up.
    wakes_at: u64,
}

enum Due {
    Call(Arc<Control>),
    /// Runs once. Must be quick.
    Once(Box<dyn FnOnce() + Send>),
}

/// Guard that keeps a call in the schedule of the watchdog.
pub(super) struct Watched {
    control: Arc<Control>,
    id: u64,
}

impl Watched {
    /// Adds `control` to the schedule. Its deadline must be set.
    pub(super) fn start(control: &Arc<Control>) -> Self {
        let due = lock(&control.deadline).next();
        let mut schedule = lock(&WATCHDOG.state.0);
        let id = schedule.insert(due, Due::Call(Arc::clone(control)));
        control.watched.store(due, Ordering::Release);
        WATCHDOG.wake_by(&schedule, due);
        Self { control: Arc::clone(control), id }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut schedule = lock(&WATCHDOG.state.0);
        let due = self.control.watched.swap(UNWATCHED, Ordering::AcqRel);
        schedule.due.remove(&(due, self.id));
    }
}

/// Makes the Lua state of `control` measure its memory every millisecond until the call has ended.
pub(super) fn poll_memory(control: Weak<Control>) {
    run_after(MEMORY_POLL_INTERVAL, move || {
        if let Some(running) = control.upgrade() {
            running.switch.interrupt_once();
            poll_memory(control);
        }
    });
}

/// Runs `action`, which must not block, on the watchdog's thread after `delay`.
pub(super) fn run_after(delay: Duration, action: impl FnOnce() + Send + 'static) {
    let due = now().saturating_add(nanos(delay));
    let mut schedule = lock(&WATCHDOG.state.0);
    schedule.insert(due, Due::Once(Box::new(action)));
    WATCHDOG.wake_by(&schedule, due);
}

impl Schedule {
    fn insert(&mut self, due: u64, entry: Due) -> u64 {
        self.next_id += 1;
        self.due.insert((due, self.next_id), entry);
        self.next_id
    }
}

impl Watchdog {
    fn start() -> Self {
        let mut first = Schedule { wakes_at: u64::MAX, ..Schedule::default() };
        // Never due. Keeps the map non-empty, so that it is not reallocated after each call.
        first.insert(u64::MAX, Due::Once(Box::new(|| {})));
        let state = Arc::new((Mutex::new(first), Condvar::new()));
        let shared = Arc::clone(&state);
        let spawned = std::thread::Builder::new()
            .name(String::from("deftool-watchdog"))
            .spawn(move || run_watchdog(&shared.0, &shared.1));
        if let Err(error) = spawned {
            // A process that cannot start a thread cannot start threads for scripts either.
            tracing::error!(%error, "cannot start the watchdog thread: time limits of scripts are not enforced");
        }
        Self { state }
    }

    /// Wakes the thread if it would sleep past `due`. Most calls do not need this: their deadlines are usually later
    /// than those of the calls that started before them.
    fn wake_by(&self, schedule: &MutexGuard<'_, Schedule>, due: u64) {
        if due < schedule.wakes_at {
            self.state.1.notify_one();
        }
    }
}

fn run_watchdog(state: &Mutex<Schedule>, wake: &Condvar) {
    let mut schedule = lock(state);
    loop {
        let now = now();
        let Some((&(due, id), _)) = schedule.due.first_key_value() else {
            schedule.wakes_at = u64::MAX;
            schedule = wake.wait(schedule).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        if due > now {
            schedule.wakes_at = due;
            let pause = Duration::from_nanos(due - now);
            schedule = wake.wait_timeout(schedule, pause).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        match schedule.due.remove(&(due, id)) {
            None => {}
            Some(Due::Once(action)) => {
                drop(schedule);
                action();
                schedule = lock(state);
            }
            Some(Due::Call(control)) => {
                // Not under the lock: waking may run arbitrary code of the caller's executor.
                drop(schedule);
                let again = enforce(&control, now);
                schedule = lock(state);
                if let Some(later) = again
                    && control.watched.load(Ordering::Acquire) != UNWATCHED
                {
                    control.watched.store(later, Ordering::Release);
                    schedule.due.insert((later, id), Due::Call(control));
                }
            }
        }
    }
}

/// Enforces the deadline of `control` at `now`. Returns the time of the next check.
fn enforce(control: &Control, now: u64) -> Option<u64> {
    let deadline @ Deadline { at, reason, .. } = *lock(&control.deadline);
    if deadline.next() > now {
        return Some(deadline.next());
    }
    if at > now {
        control.switch.interrupt_once();
        return Some(at.min(now.saturating_add(nanos(LOAD_CHECK_INTERVAL))));
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

/// Formats a duration, as in `1.5 s` or `250 ms`.
fn format_duration(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{} s", duration.as_secs_f64())
    }
}
