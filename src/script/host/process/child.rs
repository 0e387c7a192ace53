//! A program under a guard, which ends with whoever holds it.
//!
//! The guard (`isolate/guard.rs`) starts the program, waits for its end and kills what it leaves behind. Each has a thread
//! here that starts it and reads what it answers. A closed socket is the program's end, so that it ends with this
//! process, too, whatever ends that.

use std::io::{Error, Result};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::sync::oneshot;

use crate::script::ProcessOptions;
use crate::script::control::{Leash, lock, run_after};
use crate::script::isolate::{GUARD, GuardOrder, GuardWord, next_word};

/// How long a guard may take to end its program before it is killed itself.
const DEATH_LIMIT: Duration = Duration::from_secs(4);

/// The program that guards are.
static GUARDS: OnceLock<ProcessOptions> = OnceLock::new();
/// The programs that run, and those that ended lately.
static THERE: Mutex<Vec<Weak<Group>>> = Mutex::new(Vec::new());
/// Whether no more are started. Held while one starts, so that none is started unseen.
static ENDING: RwLock<bool> = RwLock::new(false);

/// Names the program that guards what scripts run with `process.run`: one that calls
/// [`serve_isolated`](crate::script::serve_isolated), as for `--isolate process`. Until then, `process.run` fails in this
/// process. The first name stands.
pub fn guard_programs(program: ProcessOptions) {
    let _ = GUARDS.set(program);
}

/// Kills the programs of all scripts, waits for their ends, and lets no more be started: for a process that ends now.
pub fn kill_programs() {
    *ENDING.write().unwrap_or_else(PoisonError::into_inner) = true;
    let groups: Vec<Arc<Group>> = lock(&THERE).drain(..).filter_map(|group| group.upgrade()).collect();
    for group in &groups {
        group.kill();
    }
    let until = Instant::now() + DEATH_LIMIT;
    for group in groups {
        group.wait(until);
    }
}

/// What a program hangs on, from before its start: pulled, it kills the program with its group, or keeps it from
/// starting.
#[derive(Debug, Default)]
pub(super) struct Rein(Mutex<Hold>);

#[derive(Debug, Default)]
enum Hold {
    #[default]
    Loose,
    Held(Arc<Group>),
    Pulled,
}

impl Rein {
    fn hold(&self, group: &Arc<Group>) {
        let mut hold = lock(&self.0);
        if matches!(*hold, Hold::Pulled) {
            group.kill();
        } else {
            *hold = Hold::Held(Arc::clone(group));
        }
    }

    fn is_pulled(&self) -> bool {
        matches!(*lock(&self.0), Hold::Pulled)
    }
}

impl Leash for Rein {
    fn pull(&self) {
        if let Hold::Held(group) = std::mem::replace(&mut *lock(&self.0), Hold::Pulled) {
            group.kill();
        }
    }
}

/// A program that runs; killed with all that it started when dropped.
pub(super) struct Child {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
    /// How it ended.
    pub(super) ended: oneshot::Receiver<Result<ExitStatus>>,
    group: Arc<Group>,
}

/// A program to start.
pub(super) struct Plan {
    /// The program, its arguments and all of its environment.
    pub(super) command: Command,
    /// Its zeroth argument.
    pub(super) name: String,
    pub(super) folder: std::path::PathBuf,
    /// Whether its stdin is a pipe rather than `/dev/null`.
    pub(super) has_input: bool,
}

impl Child {
    /// Starts the program that `prepare` answers, to hang on `rein`.
    pub(super) async fn start<Refusal: From<Error> + Send + 'static>(
        rein: Arc<Rein>,
        prepare: impl FnOnce() -> std::result::Result<Plan, Refusal> + Send + 'static,
    ) -> std::result::Result<Self, Refusal> {
        let (sender, started) = oneshot::channel();
        std::thread::Builder::new().name(String::from("deftool-child")).spawn(move || {
            match prepare().and_then(|plan| spawn(plan, &rein).map_err(Refusal::from)) {
                Err(refusal) => drop(sender.send(Err(refusal))),
                Ok((child, waiting)) => {
                    // Nobody may want it any more: then it is dropped, and so killed, right here.
                    drop(sender.send(Ok(child)));
                    waiting.run();
                }
            }
        })?;
        started.await.unwrap_or_else(|_| Err(Error::other("the thread that starts it was lost").into()))
    }

    /// Kills it and all that it started.
    pub(super) fn kill(&self) {
        self.group.kill();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A program, its guard and what it started.
#[derive(Debug)]
struct Group {
    guard: Pid,
    /// Half closed, it is the program's end.
    link: UnixStream,
    /// Whether all have ended, and the guard's number belongs to the system again.
    ended: Mutex<bool>,
    ending: Condvar,
}

impl Group {
    /// Has the guard kill the program; a guard that does not is killed, too.
    fn kill(self: &Arc<Self>) {
        let ended = lock(&self.ended);
        if *ended || self.link.shutdown(Shutdown::Write).is_err() {
            return;
        }
        // Where a program can stop its guard, it may have done so.
        let _ = kill_process(self.guard, Signal::CONT);
        drop(ended);
        let group = Arc::downgrade(self);
        run_after(DEATH_LIMIT, move || {
            if let Some(group) = group.upgrade() {
                let ended = lock(&group.ended);
                if !*ended {
                    let _ = kill_process(group.guard, Signal::KILL);
                }
            }
        });
    }

    fn wait(&self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        let ended = lock(&self.ended);
        drop(self.ending.wait_timeout_while(ended, left, |ended| !*ended));
    }
}

/// What waits for a program's end.
struct Waiting {
    guard: std::process::Child,
    group: Arc<Group>,
    /// The process number of the program, which is its group's.
    program: Option<Pid>,
    ended: oneshot::Sender<Result<ExitStatus>>,
}

fn spawn(plan: Plan, rein: &Rein) -> Result<(Child, Waiting)> {
    let Some(program) = GUARDS.get() else {
        return Err(Error::other("no guard for programs: call deftool::script::guard_programs first"));
    };
    let (stdin, input) = if plan.has_input {
        let (theirs, ours) = std::io::pipe()?;
        (OwnedFd::from(theirs), Some(ChildStdin::from(OwnedFd::from(ours))))
    } else {
        (OwnedFd::from(std::fs::File::open("/dev/null")?), None)
    };
    let (output, stdout) = std::io::pipe()?;
    let (errors, stderr) = std::io::pipe()?;
    let (link, theirs) = UnixStream::pair()?;
    let ending = ENDING.read().unwrap_or_else(PoisonError::into_inner);
    if *ending || rein.is_pulled() {
        return Err(Error::other("the call has ended"));
    }
    let guard = Command::new(&program.program)
        .args(&program.arguments)
        .arg(GUARD)
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let id =
        Pid::from_raw(guard.id().cast_signed()).ok_or_else(|| Error::other("its guard has no number"))?;
    let group = Arc::new(Group { guard: id, link, ended: Mutex::new(false), ending: Condvar::new() });
    rein.hold(&group);
    let mut there = lock(&THERE);
    there.retain(|group| group.strong_count() > 0);
    there.push(Arc::downgrade(&group));
    drop((there, ending));

    let (sender, ended) = oneshot::channel();
    let mut waiting = Waiting { guard, group: Arc::clone(&group), program: None, ended: sender };
    let order = GuardOrder::of(&plan.command, &plan.name, &plan.folder);
    let sent = order.send(&group.link, [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()]);
    // The program alone holds these ends from now on.
    drop((stdin, stdout, stderr));
    let started = sent.and_then(|()| next_word(&group.link));
    let error = match started {
        Ok(Some(GuardWord::Started(id))) => {
            waiting.program = Pid::from_raw(id);
            let child = Child {
                stdin: input,
                stdout: Some(ChildStdout::from(OwnedFd::from(output))),
                stderr: Some(ChildStderr::from(OwnedFd::from(errors))),
                ended,
                group,
            };
            return Ok((child, waiting));
        }
        Ok(Some(GuardWord::Failed(Some(code), _))) => Error::from_raw_os_error(code),
        Ok(Some(GuardWord::Failed(None, text))) => Error::other(text),
        Ok(Some(GuardWord::Ended(_)) | None) => Error::other("its guard has ended"),
        Err(error) => error,
    };
    waiting.group.kill();
    waiting.bury();
    Err(error)
}

impl Waiting {
    fn run(mut self) {
        let status = loop {
            match next_word(&self.group.link) {
                Ok(Some(GuardWord::Ended(status))) => break Ok(ExitStatus::from_raw(status)),
                Ok(Some(GuardWord::Started(_) | GuardWord::Failed(..))) => {}
                Ok(None) => break Err(Error::other("its guard was killed")),
                Err(error) => break Err(error),
            }
        };
        if status.is_err()
            && let Some(program) = self.program
        {
            // What has left the group is out of reach now.
            let _ = kill_process_group(program, Signal::KILL);
            self.group.kill();
        }
        self.bury();
        drop(self.ended.send(status));
    }

    /// Waits for the guard, which ends now.
    fn bury(&mut self) {
        let _ = self.guard.wait();
        *lock(&self.group.ended) = true;
        self.group.ending.notify_all();
    }
}
