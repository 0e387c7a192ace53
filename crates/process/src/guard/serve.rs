//! The guard's side.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::ExitStatus;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};

use super::messages::{GuardReply, GuardRequest, Program, Streams, Supervision};
use crate::confine;
use crate::processes::Descendants;

/// Maximum time from the kill signal to the end of the program.
const DEATH_LIMIT: Duration = Duration::from_secs(2);

/// A reason to end the guard.
enum Event {
    Ended(ExitStatus),
    /// The owner closed the socket, or died.
    Disconnected,
    /// No child is left. Sent before [`Event::Ended`] only if this process inherited an ignored `SIGCHLD`, which
    /// discards the exit status.
    NoChild,
}

/// Makes this process a guard, and serves the process that started it until its program has ended.
///
/// The program that [`set_guard`](super::set_guard) names must call this first in `main`, and must then return. This
/// process leaves its session, and its stdin becomes `/dev/null`.
///
/// # Errors
/// When stdin is not the socket of an owner, or a message is invalid.
pub fn serve_guard() -> io::Result<()> {
    let link = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    confine::forbid_tracing();
    match GuardRequest::receive(&link)? {
        // The owner has ended.
        None => Ok(()),
        Some((GuardRequest::Guard(program, supervision), streams)) => {
            guard(&link, program, supervision, streams)
        }
        Some((GuardRequest::Execute(program, guard), streams)) => {
            GuardReply::failed(&execute(program, guard, streams)).send(&link)
        }
    }
}

/// Runs one program until it has ended.
fn guard(link: &UnixStream, program: Program, supervision: Supervision, streams: Streams) -> io::Result<()> {
    confine::begin_guard();
    let (sender, events) = mpsc::channel();
    let (disconnected, mut lifeline) = (sender.clone(), link.try_clone()?);
    thread::Builder::new().name(String::from("lifeline")).spawn(move || {
        // The owner sends nothing more; only the end of the stream matters.
        while !matches!(lifeline.read(&mut [0; 64]), Ok(0) | Err(_)) {}
        let _ = disconnected.send(Event::Disconnected);
    })?;
    // Started before the program, which could use up the user's processes and threads.
    let (report, started) = mpsc::channel();
    let reaper = thread::Builder::new().name(String::from("reaper")).spawn(move || {
        if let Ok(group) = started.recv() {
            reap(group, &sender);
            let _ = sender.send(Event::NoChild);
        }
    })?;
    let started = match supervision {
        Supervision::Confined => start_confined(program, streams),
        Supervision::Server { .. } => start_server(link, program, streams),
    };
    let group = match started {
        Ok(group) => group,
        Err(error) => return GuardReply::failed(&error).send(link),
    };
    let _ = report.send(group);
    // If the owner has exited, the `lifeline` thread reports it.
    let _ = GuardReply::Started(group.as_raw_nonzero().get()).send(link);
    let mut ending = events.recv().ok();
    if matches!(ending, Some(Event::Disconnected)) {
        ending = terminate(group, supervision.grace(), &events);
    }
    Descendants::default().kill(|| reaper.is_finished());
    match ending.or_else(|| await_end(&events, DEATH_LIMIT)) {
        Some(Event::Ended(status)) => GuardReply::Ended(status.into_raw()).send(link),
        Some(Event::NoChild) => Err(io::Error::other("the exit status of the program is unknown")),
        // The program is in an uninterruptible system call.
        Some(Event::Disconnected) | None => GuardReply::Ended(Signal::KILL.as_raw()).send(link),
    }
}

/// Asks the program to end and kills it after `grace`. Returns its end if it needed no kill.
fn terminate(group: Pid, grace: Duration, events: &mpsc::Receiver<Event>) -> Option<Event> {
    if !grace.is_zero() {
        let _ = kill_process_group(group, Signal::TERM);
        // A stopped process handles SIGTERM only after SIGCONT.
        let _ = kill_process_group(group, Signal::CONT);
        let ended = await_end(events, grace);
        if ended.is_some() {
            return ended;
        }
    }
    let _ = kill_process_group(group, Signal::KILL);
    None
}

fn await_end(events: &mpsc::Receiver<Event>, limit: Duration) -> Option<Event> {
    let begun = Instant::now();
    loop {
        match events.recv_timeout(limit.saturating_sub(begun.elapsed())) {
            Ok(Event::Disconnected) => {}
            ended => return ended.ok(),
        }
    }
}

/// Starts the program as the leader of a new process group, in a domain of its own.
fn start_confined(program: Program, streams: Streams) -> io::Result<Pid> {
    // This thread must end: a program may send signals to the threads in its own domain.
    let starting = thread::Builder::new().name(String::from("program")).spawn(move || {
        confine::enter_domain();
        confine::forbid_limits_of_others();
        start(program, streams)
    })?;
    starting.join().unwrap_or_else(|_| Err(io::Error::other("the guard failed")))
}

fn start(program: Program, streams: Streams) -> io::Result<Pid> {
    id_of(&program.command(streams).process_group(0).spawn()?)
}

fn id_of(child: &std::process::Child) -> io::Result<Pid> {
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::Error::other("the program has no process ID"))
}

/// Starts the server as the leader of a new process group that is killed together with the guard.
///
/// The parent death signal is bound to the thread that starts the process. The calling thread must live as long as the
/// guard.
#[cfg(target_os = "linux")]
fn start_server(link: &UnixStream, program: Program, streams: Streams) -> io::Result<Pid> {
    use std::os::fd::OwnedFd;
    use std::process::{Command, Stdio};

    use rustix::event::{PollFd, PollFlags, poll};

    let this = crate::HelperProgram::this_program(std::env::args_os().skip(1))?;
    let (socket, theirs) = UnixStream::pair()?;
    let helper = Command::new(this.program)
        .args(this.arguments)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .process_group(0)
        .spawn()?;
    let guard = rustix::process::getpid().as_raw_nonzero().get();
    GuardRequest::Execute(program, guard).send(&socket, &streams)?;
    // The helper closes its end when it executes the server. Executing a file may take long, and the owner may end.
    let mut ends = [PollFd::new(&socket, PollFlags::IN), PollFd::new(link, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut ends, None))?;
    let [end_of_helper, _] = ends;
    if !end_of_helper.revents().is_empty()
        && let Some(GuardReply::Failed(code, text)) = GuardReply::receive(&socket)?
    {
        return Err(GuardReply::error(code, text));
    }
    id_of(&helper)
}

#[cfg(not(target_os = "linux"))]
fn start_server(_: &UnixStream, program: Program, streams: Streams) -> io::Result<Pid> {
    start(program, streams)
}

/// Executes the program in place of this process, to be killed together with `guard`. Returns only on an error.
fn execute(program: Program, guard: i32, streams: Streams) -> io::Error {
    #[cfg(target_os = "linux")]
    {
        let tied = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        // The signal is not sent if the guard exited before it was set.
        if tied.is_ok() && rustix::process::getppid().map(|id| id.as_raw_nonzero().get()) != Some(guard) {
            return io::Error::other("the guard has exited");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = guard;
    program.command(streams).exec()
}

/// Waits for the program and for all orphans that become children of the guard. Returns when no child is left.
fn reap(group: Pid, events: &mpsc::Sender<Event>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((id, status))) if id == group => {
                // The number of the group is not reused while the group has members.
                let _ = kill_process_group(group, Signal::KILL);
                let _ = events.send(Event::Ended(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(_) | Err(Errno::INTR) => {}
            // No children are left.
            Err(_) => return,
        }
    }
}
