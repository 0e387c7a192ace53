//! Child processes that run under a guard process and are killed when their owner drops them.
//!
//! The guard (`isolate/guard.rs`) starts the program, waits for it to exit and kills the processes it leaves behind.
//! For each guard, one thread in this process starts it and reads its replies. The guard kills the program when its
//! socket closes, so the program also ends when this process ends for any reason.

use std::io::{Error, Result};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use deftool_process::{HelperProgram, lock};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::sync::oneshot;

use crate::control::{CallResource, run_after};
use crate::isolate::{GUARD, GuardReply, GuardRequest, next_reply};

/// Time limit for a guard to end its program. Then the guard itself is killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(4);

/// The command that starts a guard.
static GUARD_COMMAND: OnceLock<HelperProgram> = OnceLock::new();
/// Running programs. May also contain programs that ended recently.
static RUNNING: Mutex<Vec<Weak<GuardedProgram>>> = Mutex::new(Vec::new());
/// Whether no new program may start. Read-locked during a start, so that [`kill_programs`] misses no program.
static SHUTTING_DOWN: RwLock<bool> = RwLock::new(false);

/// Sets the command that starts the guards for `process.run`. It must call
/// [`serve_isolated`](crate::serve_isolated), as for `--isolate process`. Until it is set, `process.run` fails
/// in this process. Only the first call has an effect.
pub fn guard_programs(program: HelperProgram) {
    let _ = GUARD_COMMAND.set(program);
}

/// Kills the programs of all scripts, waits until they have ended, and prevents new ones. Called before this process
/// exits.
pub fn kill_programs() {
    *SHUTTING_DOWN.write().unwrap_or_else(PoisonError::into_inner) = true;
    let groups: Vec<Arc<GuardedProgram>> =
        lock(&RUNNING).drain(..).filter_map(|group| group.upgrade()).collect();
    for group in &groups {
        group.kill();
    }
    let deadline = Instant::now() + KILL_TIMEOUT;
    for group in groups {
        group.wait(deadline);
    }
}

/// A handle that kills a program and its process group when the call ends. It is created before the program starts and
/// can prevent the start.
#[derive(Debug, Default)]
pub(super) struct KillHandle(Mutex<KillState>);

#[derive(Debug, Default)]
enum KillState {
    #[default]
    NotStarted,
    Running(Arc<GuardedProgram>),
    Killed,
}

impl KillHandle {
    fn attach(&self, group: &Arc<GuardedProgram>) {
        let mut state = lock(&self.0);
        if matches!(*state, KillState::Killed) {
            group.kill();
        } else {
            *state = KillState::Running(Arc::clone(group));
        }
    }

    fn is_killed(&self) -> bool {
        matches!(*lock(&self.0), KillState::Killed)
    }
}

impl CallResource for KillHandle {
    fn abort(&self) {
        if let KillState::Running(group) = std::mem::replace(&mut *lock(&self.0), KillState::Killed) {
            group.kill();
        }
    }
}

/// A running program. Dropping it kills the program and all processes that it started.
pub(super) struct Child {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
    /// Receives the exit status.
    pub(super) ended: oneshot::Receiver<Result<ExitStatus>>,
    group: Arc<GuardedProgram>,
}

/// The parameters for starting a program.
pub(super) struct LaunchPlan {
    /// The program, its arguments and its complete environment.
    pub(super) command: Command,
    /// Argument zero.
    pub(super) name: String,
    pub(super) folder: std::path::PathBuf,
    /// Whether stdin is a pipe. Otherwise it is `/dev/null`.
    pub(super) has_input: bool,
}

impl Child {
    /// Starts the program that `prepare` returns. `kill_handle` can kill it.
    pub(super) async fn start<E: From<Error> + Send + 'static>(
        kill_handle: Arc<KillHandle>,
        prepare: impl FnOnce() -> std::result::Result<LaunchPlan, E> + Send + 'static,
    ) -> std::result::Result<Self, E> {
        let (sender, started) = oneshot::channel();
        std::thread::Builder::new().name(String::from("deftool-child")).spawn(move || {
            match prepare().and_then(|plan| spawn(plan, &kill_handle).map_err(E::from)) {
                Err(error) => drop(sender.send(Err(error))),
                Ok((child, waiter)) => {
                    // If the receiver is gone, this drops the child, which kills it.
                    drop(sender.send(Ok(child)));
                    waiter.run();
                }
            }
        })?;
        started
            .await
            .unwrap_or_else(|_| Err(Error::other("the thread that starts the program failed").into()))
    }

    /// Kills the program and all processes that it started.
    pub(super) fn kill(&self) {
        self.group.kill();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A program with its guard and all processes that it started.
#[derive(Debug)]
struct GuardedProgram {
    guard: Pid,
    /// Shutting down the write side makes the guard kill the program.
    socket: UnixStream,
    /// Whether all processes have ended. Then the guard's process ID may be reused.
    ended: Mutex<bool>,
    exited: Condvar,
}

impl GuardedProgram {
    /// Makes the guard kill the program. Kills the guard if it does not finish in time.
    fn kill(self: &Arc<Self>) {
        let ended = lock(&self.ended);
        if *ended || self.socket.shutdown(Shutdown::Write).is_err() {
            return;
        }
        // The program may have stopped its guard with a signal.
        let _ = kill_process(self.guard, Signal::CONT);
        drop(ended);
        let group = Arc::downgrade(self);
        run_after(KILL_TIMEOUT, move || {
            if let Some(group) = group.upgrade() {
                let ended = lock(&group.ended);
                if !*ended {
                    let _ = kill_process(group.guard, Signal::KILL);
                }
            }
        });
    }

    fn wait(&self, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now());
        let ended = lock(&self.ended);
        drop(self.exited.wait_timeout_while(ended, left, |ended| !*ended));
    }
}

/// The state of the thread that waits for a program to exit.
struct ExitWaiter {
    guard: std::process::Child,
    group: Arc<GuardedProgram>,
    /// The process ID of the program, which is also its group ID.
    program: Option<Pid>,
    ended: oneshot::Sender<Result<ExitStatus>>,
}

fn spawn(plan: LaunchPlan, kill_handle: &KillHandle) -> Result<(Child, ExitWaiter)> {
    let Some(program) = GUARD_COMMAND.get() else {
        return Err(Error::other("no guard for programs: call deftool::script::guard_programs first"));
    };
    let (stdin, input) = if plan.has_input {
        let (guard_end, our_end) = std::io::pipe()?;
        (OwnedFd::from(guard_end), Some(ChildStdin::from(OwnedFd::from(our_end))))
    } else {
        (OwnedFd::from(std::fs::File::open("/dev/null")?), None)
    };
    let (output, stdout) = std::io::pipe()?;
    let (errors, stderr) = std::io::pipe()?;
    let (socket, guard_end) = UnixStream::pair()?;
    let shutting_down = SHUTTING_DOWN.read().unwrap_or_else(PoisonError::into_inner);
    if *shutting_down || kill_handle.is_killed() {
        return Err(Error::other("the call has ended"));
    }
    let guard = Command::new(&program.program)
        .args(&program.arguments)
        .arg(GUARD)
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(guard_end)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let id =
        Pid::from_raw(guard.id().cast_signed()).ok_or_else(|| Error::other("its guard has no process ID"))?;
    let group =
        Arc::new(GuardedProgram { guard: id, socket, ended: Mutex::new(false), exited: Condvar::new() });
    kill_handle.attach(&group);
    let mut running = lock(&RUNNING);
    running.retain(|group| group.strong_count() > 0);
    running.push(Arc::downgrade(&group));
    drop((running, shutting_down));

    let (sender, ended) = oneshot::channel();
    let mut waiter = ExitWaiter { guard, group: Arc::clone(&group), program: None, ended: sender };
    let request = GuardRequest::of(&plan.command, &plan.name, &plan.folder);
    let sent = request.send(&group.socket, [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()]);
    // From now on only the program has these ends open.
    drop((stdin, stdout, stderr));
    let started = sent.and_then(|()| next_reply(&group.socket));
    let error = match started {
        Ok(Some(GuardReply::Started(id))) => {
            waiter.program = Pid::from_raw(id);
            let child = Child {
                stdin: input,
                stdout: Some(ChildStdout::from(OwnedFd::from(output))),
                stderr: Some(ChildStderr::from(OwnedFd::from(errors))),
                ended,
                group,
            };
            return Ok((child, waiter));
        }
        Ok(Some(GuardReply::Failed(Some(code), _))) => Error::from_raw_os_error(code),
        Ok(Some(GuardReply::Failed(None, text))) => Error::other(text),
        Ok(Some(GuardReply::Ended(_)) | None) => Error::other("its guard exited"),
        Err(error) => error,
    };
    waiter.group.kill();
    waiter.reap();
    Err(error)
}

impl ExitWaiter {
    fn run(mut self) {
        let status = loop {
            match next_reply(&self.group.socket) {
                Ok(Some(GuardReply::Ended(status))) => break Ok(ExitStatus::from_raw(status)),
                Ok(Some(GuardReply::Started(_) | GuardReply::Failed(..))) => {}
                Ok(None) => break Err(Error::other("its guard was killed")),
                Err(error) => break Err(error),
            }
        };
        if status.is_err()
            && let Some(program) = self.program
        {
            // Processes that left the group cannot be killed any more.
            let _ = kill_process_group(program, Signal::KILL);
            self.group.kill();
        }
        self.reap();
        drop(self.ended.send(status));
    }

    /// Reaps the guard process, which is about to exit.
    fn reap(&mut self) {
        let _ = self.guard.wait();
        *lock(&self.group.ended) = true;
        self.group.exited.notify_all();
    }
}
