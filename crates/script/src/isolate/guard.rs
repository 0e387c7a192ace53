//! The process between the engine and a program that a script runs. It keeps the program away from the engine and kills
//! all processes that the program leaves behind.
//!
//! Each program has its own guard, which runs the same executable as a script host. The guard's stdin is a socket, over
//! which it receives the program's three standard streams and one [`GuardRequest`]. It sends a [`GuardReply`] when the
//! program starts and another when the program has ended. When the engine closes the socket, or dies, the guard kills
//! the program.
//!
//! - *No terminal.* The guard leads its own session, which has no terminal. The program leads a process group in it.
//! - *No processes left behind.* The guard is a subreaper on Linux: a descendant of the program becomes the guard's
//!   child when its parent ends, regardless of its process group and session. When the program ends, the guard kills
//!   them all. On other systems it kills the program's process group.
//! - *No access to the engine.* On Linux the program starts in a Landlock domain. It cannot trace a process outside the
//!   domain, and so cannot read `/proc/N/environ` or `/proc/N/mem`. Since Linux 6.12 it cannot send signals to such a
//!   process. A system call filter keeps it from the resource limits of other processes. Both apply to a thread and its
//!   children, so the guard itself stays outside the domain and out of the program's reach.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use deftool_process::frame::{NO_PAYLOAD, Octets, head, invalid, read_frame, write_frame};
use deftool_process::{Descendants, confine};
use rustix::io::{Errno, FdFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};
use serde::{Deserialize, Serialize};

/// The last argument of a guard process.
pub(crate) const GUARD: &str = "program-guard";
/// Maximum time from the kill signal to the end of the program.
const DEATH_LIMIT: Duration = Duration::from_secs(2);

/// A program to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct GuardRequest {
    program: Octets,
    /// Argument zero.
    name: String,
    arguments: Vec<String>,
    folder: Octets,
    /// The complete environment.
    variables: Vec<(Octets, Octets)>,
}

/// A message from a guard.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum GuardReply {
    /// The program runs. Holds its process ID, which is also its process group ID.
    Started(i32),
    /// The program cannot be started. Holds the system's error number, if there is one, and a message.
    Failed(Option<i32>, String),
    /// The program ended with this wait status, and its descendants were killed.
    Ended(i32),
}

impl GuardRequest {
    /// Creates the request to start `command` in `folder` with `name` as argument zero. The streams are sent
    /// separately.
    pub(crate) fn of(command: &Command, name: &str, folder: &Path) -> Self {
        let variables = command.get_envs().filter_map(|(name, value)| Some((octets(name), octets(value?))));
        Self {
            program: octets(command.get_program()),
            name: name.to_owned(),
            arguments: command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            folder: octets(folder.as_os_str()),
            variables: variables.collect(),
        }
    }

    /// Sends the request to a guard, with the program's stdin, stdout and stderr.
    ///
    /// # Errors
    /// When the guard has ended.
    pub(crate) fn send(&self, link: &UnixStream, files: [BorrowedFd<'_>; 3]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        if !rights.push(SendAncillaryMessage::ScmRights(&files)) {
            return Err(invalid(String::from("cannot send three file descriptors")));
        }
        rustix::net::sendmsg(link, &[IoSlice::new(b"f")], &mut rights, SendFlags::empty())?;
        send(link, self)
    }

    fn start(self, files: [OwnedFd; 3]) -> io::Result<Pid> {
        let [stdin, stdout, stderr] = files;
        let child = Command::new(self.program.into_path())
            .arg0(self.name)
            .args(self.arguments)
            .current_dir(self.folder.into_path())
            .env_clear()
            .envs(self.variables.into_iter().map(|(name, value)| (name.into_path(), value.into_path())))
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr))
            .process_group(0)
            .spawn()?;
        Pid::from_raw(child.id().cast_signed())
            .ok_or_else(|| io::Error::other("the program has no process ID"))
    }
}

fn octets(text: &OsStr) -> Octets {
    Octets::of_path(Path::new(text))
}

fn send(mut link: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut frame = Vec::new();
    write_frame(&mut frame, message, NO_PAYLOAD)?;
    io::Write::write_all(&mut link, &frame)
}

/// Reads the next message of a guard. Returns `None` when the guard has ended.
///
/// # Errors
/// When the message is invalid.
pub(crate) fn next_reply(mut link: &UnixStream) -> io::Result<Option<GuardReply>> {
    read_frame(&mut link)?.map(|body| Ok(head::<GuardReply>(&body)?.0)).transpose()
}

/// Returns whether this process was started as a guard.
pub(super) fn is_requested() -> bool {
    std::env::args_os().next_back().is_some_and(|argument| argument == GUARD)
}

/// A reason to end the guard.
enum Event {
    Ended(ExitStatus),
    /// The engine closed the socket, or died.
    Disconnected,
    /// No child is left. Sent before [`Event::Ended`] only if this process inherited an ignored `SIGCHLD`, which
    /// discards the exit status.
    NoChild,
}

/// Runs one program until it has ended.
///
/// # Errors
/// When the socket fails, or a message is invalid.
pub(super) fn serve() -> io::Result<()> {
    let link = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    confine::begin_guard();
    let files = receive_files(&link)?;
    // The engine has ended.
    let Some(body) = read_frame(&mut &link)? else { return Ok(()) };
    let (request, _) = head::<GuardRequest>(&body)?;

    let (sender, events) = mpsc::channel();
    let (disconnected, mut lifeline) = (sender.clone(), link.try_clone()?);
    std::thread::Builder::new().name(String::from("lifeline")).spawn(move || {
        // The engine sends nothing more; only the end of the stream matters.
        while !matches!(io::Read::read(&mut lifeline, &mut [0; 64]), Ok(0) | Err(_)) {}
        let _ = disconnected.send(Event::Disconnected);
    })?;
    // Started before the program, which could use up the user's processes and threads.
    let (report, started) = mpsc::channel();
    let reaper = std::thread::Builder::new().name(String::from("reaper")).spawn(move || {
        if let Ok(group) = started.recv() {
            reap(group, &sender);
            let _ = sender.send(Event::NoChild);
        }
    })?;
    // This thread must end: a program may send signals to the threads in its own domain.
    let starting = std::thread::Builder::new().name(String::from("program")).spawn(move || {
        confine::enter_domain();
        confine::forbid_limits_of_others();
        request.start(files)
    })?;
    let group = match starting.join().unwrap_or_else(|_| Err(io::Error::other("the guard failed"))) {
        Ok(group) => group,
        Err(error) => return send(&link, &GuardReply::Failed(error.raw_os_error(), error.to_string())),
    };
    let _ = report.send(group);
    // If the engine has exited, the `lifeline` thread reports it.
    let _ = send(&link, &GuardReply::Started(group.as_raw_nonzero().get()));
    let mut ending = events.recv();
    let is_disconnected = matches!(ending, Ok(Event::Disconnected));
    if is_disconnected {
        let _ = kill_process_group(group, Signal::KILL);
    }
    Descendants::default().kill(|| reaper.is_finished());
    if is_disconnected {
        ending = events.recv_timeout(DEATH_LIMIT).map_err(|_| mpsc::RecvError);
    }
    let status = match ending {
        Ok(Event::Ended(status)) => status.into_raw(),
        Ok(Event::NoChild) => return Err(io::Error::other("the exit status of the program is unknown")),
        // The program is in an uninterruptible system call.
        Ok(Event::Disconnected) | Err(_) => Signal::KILL.as_raw(),
    };
    send(&link, &GuardReply::Ended(status))
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

/// Receives the program's standard streams.
fn receive_files(link: &UnixStream) -> io::Result<[OwnedFd; 3]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut mark = [0];
    rustix::net::recvmsg(link, &mut [IoSliceMut::new(&mut mark)], &mut rights, RecvFlags::empty())?;
    let mut files = Vec::new();
    for message in rights.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            files.extend(received);
        }
    }
    for file in &files {
        rustix::io::fcntl_setfd(file, FdFlags::CLOEXEC)?;
    }
    files.try_into().map_err(|_| invalid(String::from("expected three files")))
}
