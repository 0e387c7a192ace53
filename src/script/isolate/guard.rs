//! The process between the engine and a program that a script runs, so that the program cannot reach the engine and
//! nothing that it starts is left behind.
//!
//! One guard for each program, of the same executable as a script host. Its stdin is a socket: over it come the
//! program's three standard streams and one [`Order`]; it answers with a [`Word`] when the program starts and another
//! when it has ended. When the engine closes the socket, or dies, the guard ends the program.
//!
//! - *No terminal.* The guard leads a session of its own, in which there is none; the program leads a process group in
//!   it.
//! - *Nothing left behind.* On Linux what the program starts becomes the guard's child when its parent ends, whatever
//!   group or session it made for itself, and is killed when the program ends. Elsewhere its group is killed.
//! - *No access to the engine.* On Linux the program starts in a Landlock domain: it may not trace a process outside,
//!   which is what reading `/proc/N/environ` or `/proc/N/mem` takes, nor, since Linux 6.12, send it a signal. A domain
//!   belongs to a thread and its children, so that the guard itself stays outside and out of the program's reach.

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

use rustix::io::{Errno, FdFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};
use serde::{Deserialize, Serialize};

use super::confine;
use super::protocol::{ALONE, Octets, head, invalid, read_frame, write_frame};

/// The last argument of a process that is to be a guard.
pub(crate) const GUARD: &str = "program-guard";
/// How long what was killed may take to be gone.
const DEATH_LIMIT: Duration = Duration::from_secs(2);

/// A program to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    program: Octets,
    /// The zeroth argument.
    name: String,
    arguments: Vec<String>,
    folder: Octets,
    /// All of its environment.
    variables: Vec<(Octets, Octets)>,
}

/// An answer of a guard.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// The program runs; its process number, which is its group's.
    Started(i32),
    /// It cannot be started: the system's error number, if there is one, and a text.
    Failed(Option<i32>, String),
    /// It ended with this wait status, and nothing of it is left.
    Ended(i32),
}

impl Order {
    /// The order to start `command`, whose zeroth argument is `name` and whose streams are sent beside it.
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

    /// Sends it to a guard, with the program's stdin, stdout and stderr.
    ///
    /// # Errors
    /// When the guard is gone.
    pub(crate) fn send(&self, link: &UnixStream, files: [BorrowedFd<'_>; 3]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        if !rights.push(SendAncillaryMessage::ScmRights(&files)) {
            return Err(invalid(String::from("no room for three files")));
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
        Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::Error::other("it has no number"))
    }
}

fn octets(text: &OsStr) -> Octets {
    Octets::of_path(Path::new(text))
}

fn send(mut link: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut frame = Vec::new();
    write_frame(&mut frame, message, ALONE)?;
    io::Write::write_all(&mut link, &frame)
}

/// The next word of a guard; `None` when it is gone.
///
/// # Errors
/// When what it sends makes no sense.
pub(crate) fn next_word(mut link: &UnixStream) -> io::Result<Option<Word>> {
    read_frame(&mut link)?.map(|body| Ok(head::<Word>(&body)?.0)).transpose()
}

/// Whether this process was started to be a guard.
pub(super) fn is_wanted() -> bool {
    std::env::args_os().next_back().is_some_and(|argument| argument == GUARD)
}

enum Event {
    Ended(ExitStatus),
    /// The engine wants the program's end, or is gone.
    Cut,
}

/// Guards one program to its end.
///
/// # Errors
/// When the socket breaks, or what comes over it makes no sense.
pub(super) fn serve() -> io::Result<()> {
    let link = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    confine::begin_guard();
    let files = receive_files(&link)?;
    // One that would have ordered something is gone.
    let Some(body) = read_frame(&mut &link)? else { return Ok(()) };
    let (order, _) = head::<Order>(&body)?;

    let (sender, events) = mpsc::channel();
    let (cut, mut lifeline) = (sender.clone(), link.try_clone()?);
    std::thread::Builder::new().name(String::from("lifeline")).spawn(move || {
        // Nothing more is sent; only the end counts.
        while !matches!(io::Read::read(&mut lifeline, &mut [0; 64]), Ok(0) | Err(_)) {}
        let _ = cut.send(Event::Cut);
    })?;
    let starting = std::thread::Builder::new().name(String::from("program")).spawn(move || {
        confine::enter_domain();
        order.start(files)
    })?;
    let started = starting.join().unwrap_or_else(|_| Err(io::Error::other("the guard failed")));
    let group = match started {
        Ok(group) => group,
        Err(error) => return send(&link, &Word::Failed(error.raw_os_error(), error.to_string())),
    };
    // An engine that is gone closes the socket, which is seen below.
    let _ = send(&link, &Word::Started(group.as_raw_nonzero().get()));
    std::thread::Builder::new().name(String::from("reaper")).spawn(move || reap(group, &sender))?;
    let mut ending = events.recv();
    if matches!(ending, Ok(Event::Cut)) {
        let _ = kill_process_group(group, Signal::KILL);
        confine::kill_descendants();
        ending = events.recv_timeout(DEATH_LIMIT).map_err(|_| mpsc::RecvError);
    } else {
        confine::kill_descendants();
    }
    let status = match ending {
        Ok(Event::Ended(status)) => status.into_raw(),
        // The kernel holds it, and lets nobody kill it now.
        Ok(Event::Cut) | Err(_) => Signal::KILL.as_raw(),
    };
    send(&link, &Word::Ended(status))
}

/// Waits for the ends of the program and of all that falls to the guard.
fn reap(group: Pid, events: &mpsc::Sender<Event>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((id, status))) if id == group => {
                // What is left of its group keeps its number from being given to another.
                let _ = kill_process_group(group, Signal::KILL);
                let _ = events.send(Event::Ended(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(_) | Err(Errno::INTR) => {}
            // There is nobody left.
            Err(_) => return,
        }
    }
}

/// The program's standard streams.
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
    files.try_into().map_err(|_| invalid(String::from("not three files")))
}
