//! The guard: a process between a worker and its server. It ends the server when the worker ends.
//!
//! Stdin of the guard is the lifeline, a pipe from the worker. The kernel closes it when the worker exits for any
//! reason. The worker sends one line on it, a [`GuardRequest`]. When the lifeline closes, the guard ends the server:
//! SIGTERM to its process group, a grace period, SIGKILL. The guard writes [`GuardReport`]s to stdout, one per line;
//! stderr is the server's output.
//!
//! The server has its own process group in the guard's session, so Ctrl-C in a terminal reaches neither of them. On
//! Linux the guard is the subreaper of the server's descendants: it finds and kills them at the end, even if they are
//! in another group or session. The server also has a parent death signal (`PR_SET_PDEATHSIG`), so it is killed
//! together with its guard. A process can set this signal only for itself, so a second process of the same program sets
//! it and then executes the server. On other systems only the group can be killed, and the worker kills it if the guard
//! is lost.
//!
//! If worker, guard and server are killed at the same time, processes that the server started remain.

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
use deftool_process::Descendants;

/// Maximum length of a request, in bytes.
const MAX_REQUEST: usize = 4 << 20;
/// Time limit for killed processes to exit.
const DEATH_LIMIT: Duration = Duration::from_secs(2);

/// A request to a guard process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum GuardRequest {
    /// Start this program and guard it.
    Guard {
        /// The program and its arguments.
        command: Vec<String>,
        /// Milliseconds between SIGTERM and SIGKILL.
        grace_ms: u64,
    },
    /// Execute this program in place of the current process. Sent by the guard.
    Exec {
        /// The program and its arguments.
        command: Vec<String>,
        /// Process id of the guard.
        guard: i32,
    },
}

/// A report from a guard process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum GuardReport {
    /// The process id of the server, which is also the id of its group.
    Started(i32),
    /// The program cannot be started.
    Failed(String),
    /// The server and its descendants exited.
    Exited {
        /// The exit code.
        code: Option<i32>,
        /// The signal that terminated it.
        signal: Option<i32>,
    },
}

/// Runs the guard of a managed server until the server ends. The program in [`GuardProgram`](super::GuardProgram) must
/// call this first and then return from `main`.
///
/// # Errors
/// When the pipes are not available or the request is invalid.
pub fn guard_server() -> io::Result<()> {
    let mut lifeline = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    // The copies have close-on-exec set.
    let reports = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    match read_request(&mut lifeline)? {
        // The worker exited before it sent a request.
        None => Ok(()),
        Some(GuardRequest::Guard { command, grace_ms }) => {
            rustix::stdio::dup2_stdout(&nothing)?;
            guard(lifeline, reports, command, Duration::from_millis(grace_ms))
        }
        Some(GuardRequest::Exec { command, guard }) => {
            rustix::stdio::dup2_stdout(io::stderr())?;
            send_report(&reports, &GuardReport::Failed(exec_program(&command, guard)))
        }
    }
}

fn read_request(lifeline: &mut File) -> io::Result<Option<GuardRequest>> {
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
        if line.len() > MAX_REQUEST {
            return Err(io::Error::other("the request to the guard is too long"));
        }
    }
}

fn send_report(mut reports: &File, report: &GuardReport) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    reports.write_all(&line)
}

/// Executes the program in place of this process. Returns only on an error, as text.
fn exec_program(command: &[String], guard: i32) -> String {
    #[cfg(target_os = "linux")]
    {
        let tied = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        // The signal is not sent if the guard exited before it was set.
        if tied.is_ok() && rustix::process::getppid().map(|id| id.as_raw_nonzero().get()) != Some(guard) {
            return String::from("the guard process has exited");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = guard;
    let Some((program, arguments)) = command.split_first() else {
        return String::from("the command is empty");
    };
    describe(&Command::new(program).args(arguments).exec())
}

/// Returns the text of a system error without its number.
fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

enum Event {
    /// The server's process ended.
    Exited { code: Option<i32>, signal: Option<i32> },
    /// The worker requested a stop, or exited.
    Stop,
}

fn guard(mut lifeline: File, reports: File, command: Vec<String>, grace: Duration) -> io::Result<()> {
    // Fails only for a process group leader, which terminal signals do not reach either.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let (sender, events) = mpsc::channel();
    let stop = sender.clone();
    std::thread::Builder::new().name(String::from("lifeline")).spawn(move || {
        let mut piece = [0; 64];
        // No further data is expected; only the end of the pipe matters.
        while !matches!(lifeline.read(&mut piece), Ok(0) | Err(_)) {}
        let _ = stop.send(Event::Stop);
    })?;
    // Started from this thread, which lives as long as the process: the parent death signal is bound to the thread.
    let group = match start(&reports, &command) {
        Ok(group) => group,
        Err(error) => return send_report(&reports, &GuardReport::Failed(describe(&error))),
    };
    // If the worker has exited, the lifeline reports it.
    let _ = send_report(&reports, &GuardReport::Started(group.as_raw_nonzero().get()));
    let reaper = std::thread::Builder::new().name(String::from("reaper")).spawn(move || reap(group, &sender));
    let reaper = match reaper {
        Ok(reaper) => reaper,
        Err(error) => {
            let _ = kill_process_group(group, Signal::KILL);
            return Err(error);
        }
    };
    let mut ending = events.recv();
    if matches!(ending, Ok(Event::Stop)) {
        let _ = kill_process_group(group, Signal::TERM);
        // A stopped process handles SIGTERM only after SIGCONT.
        let _ = kill_process_group(group, Signal::CONT);
        ending = await_exit(&events, grace).or_else(|_| {
            let _ = kill_process_group(group, Signal::KILL);
            await_exit(&events, DEATH_LIMIT)
        });
    }
    #[cfg(target_os = "linux")]
    Descendants::default().kill(|| reaper.is_finished());
    match ending {
        Ok(Event::Exited { code, signal }) => send_report(&reports, &GuardReport::Exited { code, signal }),
        // The process is in an uninterruptible system call.
        Ok(Event::Stop) | Err(_) => send_report(&reports, &GuardReport::Exited { code: None, signal: None }),
    }
}

fn await_exit(events: &mpsc::Receiver<Event>, limit: Duration) -> Result<Event, mpsc::RecvError> {
    let until = Instant::now() + limit;
    loop {
        match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(event @ Event::Exited { .. }) => return Ok(event),
            Ok(Event::Stop) => {}
            Err(_) => return Err(mpsc::RecvError),
        }
    }
}

/// Starts the server as the leader of a new process group.
fn start(reports: &File, command: &[String]) -> io::Result<Pid> {
    let mut child = if cfg!(target_os = "linux") {
        let request = GuardRequest::Exec {
            command: command.to_vec(),
            guard: rustix::process::getpid().as_raw_nonzero().get(),
        };
        // The executable that runs now, even if its file was replaced since.
        let own = PathBuf::from("/proc/self/exe");
        let mut child = Command::new(if own.exists() { own } else { std::env::current_exe()? })
            .args(std::env::args_os().skip(1))
            .stdin(Stdio::piped())
            .stdout(Stdio::from(reports.try_clone()?))
            .process_group(0)
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            let mut line = serde_json::to_vec(&request)?;
            line.push(b'\n');
            input.write_all(&line)?;
        }
        child
    } else {
        let (program, arguments) =
            command.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
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
            Err(io::Error::other("the process has no id"))
        }
    }
}

/// Reaps the server and all descendants that the guard inherits.
fn reap(group: Pid, events: &mpsc::Sender<Event>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((id, status))) if id == group => {
                // Remaining processes of the group keep its id from being reused.
                let _ = kill_process_group(group, Signal::KILL);
                let (code, signal) = (status.exit_status(), status.terminating_signal());
                let _ = events.send(Event::Exited { code, signal });
            }
            Ok(_) | Err(Errno::INTR) => {}
            // No child processes are left.
            Err(_) => return,
        }
    }
}
