//! The owner's side: child processes that run under a guard and are ended when their owner drops them.
//!
//! For each guard, one thread in this process starts it and reads its replies.

use std::fs::File;
use std::io::{Error, PipeReader, PipeWriter, Result, pipe};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::oneshot;

use super::messages::{GuardReply, GuardRequest, Program, Streams, Supervision};
use crate::{HelperProgram, lock};

/// Time limit for a guard to end its program, in addition to the grace period. Then the guard itself is killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(4);

/// The program that runs guards.
static GUARD: OnceLock<HelperProgram> = OnceLock::new();
/// Running programs. May also contain programs that ended recently.
static RUNNING: Mutex<Vec<Weak<GuardedProgram>>> = Mutex::new(Vec::new());
/// Whether no new program may start. Read-locked during a start, so that [`kill_programs`] misses no program.
static SHUTTING_DOWN: RwLock<bool> = RwLock::new(false);

/// Sets the program that runs the guards. It must call [`serve_guard`](super::serve_guard). Until it is set, this process
/// can start no guarded programs. Only the first call has an effect.
pub fn set_guard(program: HelperProgram) {
    let _ = GUARD.set(program);
}

/// Returns whether [`set_guard`] was called.
pub fn has_guard() -> bool {
    GUARD.get().is_some()
}

/// Kills all confined programs, waits until they have ended, and prevents new programs. Called before this process exits.
/// The guards of servers end them after that.
pub fn kill_programs() {
    *SHUTTING_DOWN.write().unwrap_or_else(PoisonError::into_inner) = true;
    let programs: Vec<Arc<GuardedProgram>> =
        lock(&RUNNING).drain(..).filter_map(|program| program.upgrade()).collect();
    for program in &programs {
        program.kill();
    }
    let deadline = Instant::now() + KILL_TIMEOUT;
    for program in programs {
        program.wait(deadline);
    }
}

/// A handle that ends a program. It is created before the program starts and can prevent the start.
#[derive(Debug, Default)]
pub struct KillHandle(Mutex<KillState>);

#[derive(Debug, Default)]
enum KillState {
    #[default]
    NotStarted,
    Running(Arc<GuardedProgram>),
    Killed,
}

impl KillHandle {
    /// Ends the program and its descendants. Does not block.
    pub fn kill(&self) {
        if let KillState::Running(program) = std::mem::replace(&mut *lock(&self.0), KillState::Killed) {
            program.kill();
        }
    }

    fn attach(&self, program: &Arc<GuardedProgram>) {
        let mut state = lock(&self.0);
        if matches!(*state, KillState::Killed) {
            program.kill();
        } else {
            *state = KillState::Running(Arc::clone(program));
        }
    }

    fn is_killed(&self) -> bool {
        matches!(*lock(&self.0), KillState::Killed)
    }
}

/// A running program. Dropping it ends the program and all processes that it started.
#[derive(Debug)]
pub struct Child {
    /// The process ID of the program, which is also the ID of its process group.
    pub id: u32,
    /// Its stdin, if [`LaunchPlan::has_input`].
    pub stdin: Option<ChildStdin>,
    /// Its stdout.
    pub stdout: Option<ChildStdout>,
    /// Its stderr, unless [`LaunchPlan::merges_output`].
    pub stderr: Option<ChildStderr>,
    ended: oneshot::Receiver<Result<ExitStatus>>,
    program: Arc<GuardedProgram>,
}

/// The parameters for starting a program.
#[derive(Debug)]
pub struct LaunchPlan {
    /// The program, its arguments and its complete environment.
    pub command: Command,
    /// Argument zero.
    pub name: String,
    /// The working directory.
    pub folder: PathBuf,
    /// Whether stdin is a pipe. Otherwise it is `/dev/null`.
    pub has_input: bool,
    /// Whether stdout and stderr are the same pipe.
    pub merges_output: bool,
    /// How the guard starts and ends the program.
    pub supervision: Supervision,
}

impl Child {
    /// Starts the program that `prepare` returns. `kill_handle` can end it. Requires a tokio runtime.
    ///
    /// # Errors
    /// When `prepare` fails, or the program or its guard cannot be started.
    pub async fn start<E: From<Error> + Send + 'static>(
        kill_handle: Arc<KillHandle>,
        prepare: impl FnOnce() -> std::result::Result<LaunchPlan, E> + Send + 'static,
    ) -> std::result::Result<Self, E> {
        let (sender, started) = oneshot::channel();
        std::thread::Builder::new().name(String::from("deftool-child")).spawn(move || {
            match prepare().and_then(|plan| spawn(&plan, &kill_handle).map_err(E::from)) {
                Err(error) => drop(sender.send(Err(error))),
                Ok((child, pipes, waiter)) => {
                    // If the receiver is gone, this drops the child, which ends it.
                    drop(sender.send(Ok((child, pipes))));
                    waiter.run();
                }
            }
        })?;
        let lost = |_| Err(Error::other("the thread that starts the program failed").into());
        let (mut child, Pipes { input, output, errors }) = started.await.unwrap_or_else(lost)?;
        child.stdin = input.map(|pipe| ChildStdin::from_std(pipe.into())).transpose()?;
        child.stdout = Some(ChildStdout::from_std(output.into())?);
        child.stderr = errors.map(|pipe| ChildStderr::from_std(pipe.into())).transpose()?;
        Ok(child)
    }

    /// Ends the program and all processes that it started.
    pub fn kill(&self) {
        self.program.kill();
    }

    /// Waits for the end of the program and of all processes that it started. Cancel safe. Must not be called again
    /// after it has returned.
    ///
    /// # Errors
    /// When the guard was lost. The process group of the program was killed then.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        let lost = |_| Err(Error::other("the thread that waits for the program failed"));
        (&mut self.ended).await.unwrap_or_else(lost)
    }
}

/// This process's ends of the pipes to a program.
struct Pipes {
    input: Option<OwnedFd>,
    output: OwnedFd,
    errors: Option<OwnedFd>,
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
    /// Shutting down the write side makes the guard end the program.
    socket: UnixStream,
    /// Dropped by [`kill`](Self::kill), which the waiting thread notices.
    kill_switch: Mutex<Option<PipeWriter>>,
    /// Whether all processes have ended. Then the guard's process ID may be reused.
    ended: Mutex<bool>,
    exited: Condvar,
}

impl GuardedProgram {
    /// Makes the guard end the program.
    fn kill(&self) {
        let ended = lock(&self.ended);
        if !*ended && lock(&self.kill_switch).take().is_some() {
            let _ = self.socket.shutdown(Shutdown::Write);
            // The program may have stopped its guard with a signal.
            let _ = kill_process(self.guard, Signal::CONT);
        }
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
    program: Arc<GuardedProgram>,
    /// Readable once the program is to be killed.
    killed: PipeReader,
    /// Time limit for the guard after that.
    kill_limit: Duration,
    /// The process group of the program.
    group: Option<Pid>,
    ended: oneshot::Sender<Result<ExitStatus>>,
}

fn spawn(plan: &LaunchPlan, kill_handle: &KillHandle) -> Result<(Child, Pipes, ExitWaiter)> {
    let Some(guard) = GUARD.get() else {
        return Err(Error::other("no guard for programs: call deftool::process::set_guard first"));
    };
    let (stdin, input) = if plan.has_input {
        let (stdin, input) = pipe()?;
        (stdin.into(), Some(input.into()))
    } else {
        (File::open("/dev/null")?.into(), None)
    };
    let (output, stdout) = pipe()?;
    let (errors, stderr) = if plan.merges_output {
        (None, stdout.try_clone()?)
    } else {
        let (errors, stderr) = pipe()?;
        (Some(errors.into()), stderr)
    };
    let (sender, ended) = oneshot::channel();
    let mut waiter = start_guard(guard, plan.supervision, kill_handle, sender)?;
    let id = match waiter.start(plan, [stdin, stdout.into(), stderr.into()]) {
        Ok(id) => id,
        Err(error) => {
            waiter.program.kill();
            waiter.reap();
            return Err(error);
        }
    };
    let program = Arc::clone(&waiter.program);
    let child = Child { id, stdin: None, stdout: None, stderr: None, ended, program };
    Ok((child, Pipes { input, output: output.into(), errors }, waiter))
}

fn start_guard(
    guard: &HelperProgram,
    supervision: Supervision,
    kill_handle: &KillHandle,
    ended: oneshot::Sender<Result<ExitStatus>>,
) -> Result<ExitWaiter> {
    let (socket, guard_end) = UnixStream::pair()?;
    let (killed, kill_switch) = pipe()?;
    let shutting_down = SHUTTING_DOWN.read().unwrap_or_else(PoisonError::into_inner);
    if *shutting_down || kill_handle.is_killed() {
        return Err(Error::other("it was cancelled before its start"));
    }
    let guard = Command::new(&guard.program)
        .args(&guard.arguments)
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(guard_end)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let id =
        Pid::from_raw(guard.id().cast_signed()).ok_or_else(|| Error::other("its guard has no process ID"))?;
    let program = Arc::new(GuardedProgram {
        guard: id,
        socket,
        kill_switch: Mutex::new(Some(kill_switch)),
        ended: Mutex::new(false),
        exited: Condvar::new(),
    });
    kill_handle.attach(&program);
    // This process does not wait for the grace period of a server.
    if supervision == Supervision::Confined {
        let mut running = lock(&RUNNING);
        running.retain(|program| program.strong_count() > 0);
        running.push(Arc::downgrade(&program));
    }
    let kill_limit = supervision.grace().saturating_add(KILL_TIMEOUT);
    Ok(ExitWaiter { guard, program, killed, kill_limit, group: None, ended })
}

impl ExitWaiter {
    /// Makes the guard start the program. Returns its process ID.
    fn start(&mut self, plan: &LaunchPlan, streams: Streams) -> Result<u32> {
        let program = Program::of(&plan.command, &plan.name, &plan.folder);
        GuardRequest::Guard(program, plan.supervision).send(&self.program.socket, &streams)?;
        // Only the program has these ends open then.
        drop(streams);
        match self.next_reply()? {
            Some(GuardReply::Started(id)) => {
                self.group = Pid::from_raw(id);
                Ok(id.cast_unsigned())
            }
            Some(GuardReply::Failed(code, text)) => Err(GuardReply::error(code, text)),
            Some(GuardReply::Ended(_)) | None => Err(Error::other("its guard exited")),
        }
    }

    /// Receives the next reply. After [`GuardedProgram::kill`], kills the guard if it does not answer in time.
    fn next_reply(&mut self) -> Result<Option<GuardReply>> {
        let socket = &self.program.socket;
        let mut either = [PollFd::new(socket, PollFlags::IN), PollFd::new(&self.killed, PollFlags::IN)];
        retry_on_intr(|| poll(&mut either, None))?;
        let [reply, _] = either;
        if reply.revents().is_empty() {
            let limit = Timespec::try_from(self.kill_limit).ok();
            let mut reply = [PollFd::new(socket, PollFlags::IN)];
            if retry_on_intr(|| poll(&mut reply, limit.as_ref()))? == 0 {
                self.guard.kill()?;
            }
        }
        GuardReply::receive(socket)
    }

    fn run(mut self) {
        let status = loop {
            match self.next_reply() {
                Ok(Some(GuardReply::Ended(status))) => break Ok(ExitStatus::from_raw(status)),
                Ok(Some(GuardReply::Started(_) | GuardReply::Failed(..))) => {}
                Ok(None) => break Err(Error::other("its guard was killed")),
                Err(error) => break Err(error),
            }
        };
        if status.is_err()
            && let Some(group) = self.group
        {
            // Processes that left the group cannot be killed any more.
            let _ = kill_process_group(group, Signal::KILL);
            self.program.kill();
        }
        self.reap();
        drop(self.ended.send(status));
    }

    /// Waits for the guard, which is about to exit.
    fn reap(&mut self) {
        loop {
            match self.next_reply() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                // It is not a guard of this version.
                Err(_) => break drop(self.guard.kill()),
            }
        }
        let _ = self.guard.wait();
        *lock(&self.program.ended) = true;
        self.program.exited.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No test of this crate sets a guard.
    #[test]
    fn a_program_without_a_guard_is_not_started() {
        let plan = LaunchPlan {
            command: Command::new("true"),
            name: String::from("true"),
            folder: PathBuf::from("/"),
            has_input: false,
            merges_output: false,
            supervision: Supervision::Confined,
        };
        let error = spawn(&plan, &KillHandle::default()).map(drop).unwrap_err();
        assert!(!has_guard() && error.to_string().contains("set_guard"), "{error}");
    }

    #[test]
    fn a_guard_that_does_not_answer_is_killed() {
        let guard = HelperProgram { program: PathBuf::from("/bin/sleep"), arguments: vec!["1000".into()] };
        let kill_handle = KillHandle::default();
        let start = || start_guard(&guard, Supervision::Confined, &kill_handle, oneshot::channel().0);
        let mut waiter = start().unwrap();
        waiter.kill_limit = Duration::from_millis(10);
        kill_handle.kill();
        assert!(matches!(waiter.next_reply(), Ok(None)));
        waiter.reap();
        assert!(*lock(&waiter.program.ended));
        assert!(start().is_err(), "a killed program was started");
    }
}
