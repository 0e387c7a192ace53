//! The process between a worker and its server, there so that no server outlives its worker.
//!
//! Its stdin is the lifeline: a pipe whose other end the worker holds and the kernel closes when the worker is gone,
//! however it went. On it comes one line, an [`Order`]; when it ends the server is ended: SIGTERM to its group, a grace,
//! SIGKILL. What the worker wants to know comes on stdout, a line each ([`Word`]); stderr is the server's output.
//!
//! The server is in a group of its own, in the guard's session: no Ctrl-C of a terminal reaches either. On Linux what the
//! server starts becomes the guard's when its parent ends, whatever group or session it made for itself, and is found and
//! killed at the end; and the server itself hangs on the guard (`PR_SET_PDEATHSIG`), so that a guard that is killed takes
//! it along. For that a second process of the same program takes the server's place before it: only a process can tie
//! itself so. Elsewhere a group is all that can be killed, and the worker kills it when the guard is lost.
//!
//! Three kills at once, of worker, guard and server, leave what the server itself had started.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};
use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
use crate::script::processes::Descendants;

/// Longer orders are none.
const MAX_ORDER: usize = 4 << 20;
/// How long what was killed may take to be gone.
const DEATH_LIMIT: Duration = Duration::from_secs(2);

/// What a guard is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Be the guard of this program.
    Guard {
        /// The program and its arguments.
        command: Vec<String>,
        /// Milliseconds between SIGTERM and SIGKILL.
        grace_ms: u64,
    },
    /// Become this program; the guard of this number says so.
    Become {
        /// The program and its arguments.
        command: Vec<String>,
        /// The guard's process number.
        guard: i32,
    },
}

/// What a guard says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Word {
    /// The server's process number, which is its group's.
    Started(i32),
    /// The program cannot be started.
    Failed(String),
    /// The server ended, and nothing of it is left.
    Exited {
        /// Its exit code.
        code: Option<i32>,
        /// Or the signal that ended it.
        signal: Option<i32>,
    },
}

/// Serves as the guard of a managed server, to its end. To be called first thing by a program that
/// [`GuardProgram`](super::GuardProgram) names, whose `main` then returns.
///
/// # Errors
/// When the pipes cannot be taken, or what comes over them makes no sense.
pub fn guard_server() -> io::Result<()> {
    let mut lifeline = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    // The copies are closed in programs that this one starts.
    let words = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    match read_order(&mut lifeline)? {
        // Who would have ordered it is gone.
        None => Ok(()),
        Some(Order::Guard { command, grace_ms }) => {
            rustix::stdio::dup2_stdout(&nothing)?;
            guard(lifeline, words, command, Duration::from_millis(grace_ms))
        }
        Some(Order::Become { command, guard }) => {
            rustix::stdio::dup2_stdout(io::stderr())?;
            say(&words, &Word::Failed(become_program(&command, guard)))
        }
    }
}

fn read_order(lifeline: &mut File) -> io::Result<Option<Order>> {
    let mut line = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let length = lifeline.read(&mut piece)?;
        let piece = piece.get(..length).unwrap_or_default();
        line.extend_from_slice(piece);
        if piece.is_empty() {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            return serde_json::from_slice(&line).map(Some).map_err(io::Error::from);
        }
        if line.len() > MAX_ORDER {
            return Err(io::Error::other("the order has no end"));
        }
    }
}

fn say(mut words: &File, word: &Word) -> io::Result<()> {
    let mut line = serde_json::to_vec(word)?;
    line.push(b'\n');
    words.write_all(&line)
}

/// Becomes the program; why it cannot.
fn become_program(command: &[String], guard: i32) -> String {
    #[cfg(target_os = "linux")]
    {
        let tied = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        // A guard that died before cannot take anything along any more.
        if tied.is_ok() && rustix::process::getppid().map(|id| id.as_raw_nonzero().get()) != Some(guard) {
            return String::from("its guard is gone");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = guard;
    let Some((program, arguments)) = command.split_first() else {
        return String::from("it has no name");
    };
    describe(&Command::new(program).args(arguments).exec())
}

/// The system's words without its number.
fn describe(error: &io::Error) -> String {
    let words = error.to_string();
    words.split(" (os error").next().unwrap_or_default().to_lowercase()
}

enum Event {
    /// The server's process ended.
    Exited { code: Option<i32>, signal: Option<i32> },
    /// The worker wants the server's end, or is gone.
    Cut,
}

fn guard(mut lifeline: File, words: File, command: Vec<String>, grace: Duration) -> io::Result<()> {
    // Fails only for the leader of a group, which is out of a terminal's reach just so.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let (sender, events) = mpsc::channel();
    let cut = sender.clone();
    std::thread::Builder::new().name(String::from("lifeline")).spawn(move || {
        let mut piece = [0; 64];
        // Nothing more is said on it; only its end counts.
        while !matches!(lifeline.read(&mut piece), Ok(0) | Err(_)) {}
        let _ = cut.send(Event::Cut);
    })?;
    // From this thread, which lives as long as the process: the server hangs on its end.
    let group = match start(&words, &command) {
        Ok(group) => group,
        Err(error) => return say(&words, &Word::Failed(describe(&error))),
    };
    // A worker that is gone already is told by the lifeline.
    let _ = say(&words, &Word::Started(group.as_raw_nonzero().get()));
    let burying =
        std::thread::Builder::new().name(String::from("undertaker")).spawn(move || bury(group, &sender));
    let burying = match burying {
        Ok(burying) => burying,
        Err(error) => {
            let _ = kill_process_group(group, Signal::KILL);
            return Err(error);
        }
    };
    let mut ending = events.recv();
    if matches!(ending, Ok(Event::Cut)) {
        let _ = kill_process_group(group, Signal::TERM);
        // One that is stopped hears no other signal.
        let _ = kill_process_group(group, Signal::CONT);
        ending = await_exit(&events, grace).or_else(|_| {
            let _ = kill_process_group(group, Signal::KILL);
            await_exit(&events, DEATH_LIMIT)
        });
    }
    #[cfg(target_os = "linux")]
    Descendants::default().kill(|| burying.is_finished());
    match ending {
        Ok(Event::Exited { code, signal }) => say(&words, &Word::Exited { code, signal }),
        // It is in the kernel's hands, which lets nobody kill it now.
        Ok(Event::Cut) | Err(_) => say(&words, &Word::Exited { code: None, signal: None }),
    }
}

fn await_exit(events: &mpsc::Receiver<Event>, limit: Duration) -> Result<Event, mpsc::RecvError> {
    let until = Instant::now() + limit;
    loop {
        match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(event @ Event::Exited { .. }) => return Ok(event),
            Ok(Event::Cut) => {}
            Err(_) => return Err(mpsc::RecvError),
        }
    }
}

/// Starts the server in a group of its own, which it leads.
fn start(words: &File, command: &[String]) -> io::Result<Pid> {
    let mut child = if cfg!(target_os = "linux") {
        let order = Order::Become {
            command: command.to_vec(),
            guard: rustix::process::getpid().as_raw_nonzero().get(),
        };
        // The very file that runs now, also if another has taken its place since.
        let own = PathBuf::from("/proc/self/exe");
        let mut child = Command::new(if own.exists() { own } else { std::env::current_exe()? })
            .args(std::env::args_os().skip(1))
            .stdin(Stdio::piped())
            .stdout(Stdio::from(words.try_clone()?))
            .process_group(0)
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            let mut line = serde_json::to_vec(&order)?;
            line.push(b'\n');
            input.write_all(&line)?;
        }
        child
    } else {
        let (program, arguments) = command.split_first().ok_or_else(|| io::Error::other("it has no name"))?;
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?))
            .process_group(0)
            .spawn()?
    };
    match Pid::from_raw(child.id().cast_signed()) {
        Some(group) => Ok(group),
        None => {
            child.kill()?;
            Err(io::Error::other("it has no number"))
        }
    }
}

/// Waits for the end of the server and of all that falls to the guard.
fn bury(group: Pid, events: &mpsc::Sender<Event>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((id, status))) if id == group => {
                // What is left of its group keeps its number from being given to another.
                let _ = kill_process_group(group, Signal::KILL);
                let (code, signal) = (status.exit_status(), status.terminating_signal());
                let _ = events.send(Event::Exited { code, signal });
            }
            Ok(_) | Err(Errno::INTR) => {}
            // There is nobody left.
            Err(_) => return,
        }
    }
}
