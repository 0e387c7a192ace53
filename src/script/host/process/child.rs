//! A program in a process group of its own, which ends with whoever holds it.
//!
//! Each has a thread that starts it and waits for its end. Before the program is reaped its whole group is killed: until
//! then its number is its own, so that no stranger who was given the same number can be hit. Beyond reach is what left
//! the group (`setsid`): there is no handle to it.

use std::io::{Error, Result};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::sync::oneshot;

use crate::script::control::{Leash, lock};

/// The programs that run, and those that ended lately.
static THERE: Mutex<Vec<Weak<Group>>> = Mutex::new(Vec::new());
/// Whether no more are started. Held while one starts, so that none is started unseen.
static ENDING: RwLock<bool> = RwLock::new(false);

/// Kills the programs of all scripts, and lets no more be started: for a process that ends now.
pub fn kill_programs() {
    *ENDING.write().unwrap_or_else(PoisonError::into_inner) = true;
    for group in lock(&THERE).drain(..) {
        if let Some(group) = group.upgrade() {
            group.kill();
        }
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

/// A program that runs; killed with its group when dropped.
pub(super) struct Child {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
    /// How it ended.
    pub(super) ended: oneshot::Receiver<Result<ExitStatus>>,
    group: Arc<Group>,
}

impl Child {
    /// Starts the program that `prepare` answers, to hang on `rein`.
    pub(super) async fn start<Refusal: From<Error> + Send + 'static>(
        rein: Arc<Rein>,
        prepare: impl FnOnce() -> std::result::Result<Command, Refusal> + Send + 'static,
    ) -> std::result::Result<Self, Refusal> {
        let (sender, started) = oneshot::channel();
        std::thread::Builder::new().name(String::from("deftool-child")).spawn(move || {
            match prepare().and_then(|command| spawn(command, &rein).map_err(Refusal::from)) {
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

    /// Kills it and what is in its group.
    pub(super) fn kill(&self) {
        self.group.kill();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

#[derive(Debug)]
struct Group {
    id: Pid,
    /// Whether the number belongs to the system again.
    reaped: Mutex<bool>,
}

impl Group {
    fn kill(&self) {
        let reaped = lock(&self.reaped);
        if !*reaped {
            self.kill_now();
        }
    }

    fn kill_now(&self) {
        // An error means that there is nothing left to kill. The program itself may have gone to another group.
        let _ = kill_process_group(self.id, Signal::KILL);
        let _ = kill_process(self.id, Signal::KILL);
    }
}

/// What waits for a program's end.
struct Waiting {
    child: std::process::Child,
    group: Arc<Group>,
    ended: oneshot::Sender<Result<ExitStatus>>,
}

fn spawn(mut command: Command, rein: &Rein) -> Result<(Child, Waiting)> {
    let ending = ENDING.read().unwrap_or_else(PoisonError::into_inner);
    if *ending || rein.is_pulled() {
        return Err(Error::other("the call has ended"));
    }
    let mut child = command.process_group(0).spawn()?;
    let id = Pid::from_raw(child.id().cast_signed()).ok_or_else(|| Error::other("it has no number"))?;
    let group = Arc::new(Group { id, reaped: Mutex::new(false) });
    rein.hold(&group);
    let mut there = lock(&THERE);
    there.retain(|group| group.strong_count() > 0);
    there.push(Arc::downgrade(&group));
    drop((there, ending));
    let (sender, ended) = oneshot::channel();
    let held = Child {
        stdin: child.stdin.take(),
        stdout: child.stdout.take(),
        stderr: child.stderr.take(),
        ended,
        group: Arc::clone(&group),
    };
    Ok((held, Waiting { child, group, ended: sender }))
}

impl Waiting {
    fn run(mut self) {
        let seen = loop {
            match waitid(WaitId::Pid(self.group.id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        let mut reaped = lock(&self.group.reaped);
        if seen.is_ok() {
            self.group.kill_now();
        }
        let status = self.child.wait();
        *reaped = true;
        drop(reaped);
        drop(self.ended.send(status));
    }
}
