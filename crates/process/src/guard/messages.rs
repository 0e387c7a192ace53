//! The messages between a guard and the owner of its program.

use std::ffi::OsStr;
use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::FdFlags;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::{Deserialize, Serialize};

use crate::frame::{NO_PAYLOAD, Octets, head, invalid, read_frame, write_frame};

/// The standard streams of a program.
pub(super) type Streams = [OwnedFd; 3];

/// The first message to a guard.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum GuardRequest {
    /// Start this program and guard it.
    Guard(Program, Supervision),
    /// Execute this program in place of the process that receives the request. Sent by the guard with this process ID.
    Execute(Program, i32),
}

/// How a guard starts its program, and how it ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Supervision {
    /// A program of a script. It is confined, and killed.
    Confined,
    /// A server. It receives SIGTERM, and is killed after the grace period or together with its guard.
    Server {
        /// Time between SIGTERM and SIGKILL.
        grace: Duration,
    },
}

impl Supervision {
    pub(super) fn grace(self) -> Duration {
        match self {
            Self::Confined => Duration::ZERO,
            Self::Server { grace } => grace,
        }
    }
}

/// A message from a guard.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum GuardReply {
    /// The program runs. Holds its process ID, which is also its process group ID.
    Started(i32),
    /// The program cannot be started. Holds the system's error number, if there is one, and a message.
    Failed(Option<i32>, String),
    /// The program ended with this wait status, and its descendants were killed.
    Ended(i32),
}

/// A program to start.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Program {
    file: Octets,
    /// Argument zero.
    name: String,
    arguments: Vec<Octets>,
    folder: Octets,
    /// The complete environment.
    variables: Vec<(Octets, Octets)>,
}

impl Program {
    /// Creates the program that `command` starts in `folder` with `name` as argument zero. The streams are sent
    /// separately.
    pub(super) fn of(command: &Command, name: &str, folder: &Path) -> Self {
        let variables = command.get_envs().filter_map(|(name, value)| Some((octets(name), octets(value?))));
        Self {
            file: octets(command.get_program()),
            name: name.to_owned(),
            arguments: command.get_args().map(octets).collect(),
            folder: octets(folder.as_os_str()),
            variables: variables.collect(),
        }
    }

    /// Returns the command that starts the program.
    pub(super) fn command(self, [stdin, stdout, stderr]: Streams) -> Command {
        let mut command = Command::new(self.file.into_path());
        command
            .arg0(self.name)
            .args(self.arguments.into_iter().map(Octets::into_path))
            .current_dir(self.folder.into_path())
            .env_clear()
            .envs(self.variables.into_iter().map(|(name, value)| (name.into_path(), value.into_path())))
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr));
        command
    }
}

impl GuardRequest {
    /// Sends the request with the program's standard streams.
    ///
    /// # Errors
    /// When the receiver has ended.
    pub(super) fn send(&self, link: &UnixStream, streams: &Streams) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        let files = streams.each_ref().map(AsFd::as_fd);
        if !rights.push(SendAncillaryMessage::ScmRights(&files)) {
            return Err(invalid(String::from("cannot send three file descriptors")));
        }
        rustix::net::sendmsg(link, &[IoSlice::new(b"f")], &mut rights, SendFlags::empty())?;
        send(link, self)
    }

    /// Receives a request and the program's standard streams. Returns `None` when the sender has ended.
    ///
    /// # Errors
    /// When the message is invalid.
    pub(super) fn receive(link: &UnixStream) -> io::Result<Option<(Self, Streams)>> {
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
        let Some(body) = read_frame(&mut &*link)? else { return Ok(None) };
        let streams = files.try_into().map_err(|_| invalid(String::from("expected three files")))?;
        Ok(Some((head(&body)?.0, streams)))
    }
}

impl GuardReply {
    pub(super) fn failed(error: &io::Error) -> Self {
        Self::Failed(error.raw_os_error(), error.to_string())
    }

    /// Returns the error of a program that was not started.
    pub(super) fn error(code: Option<i32>, text: String) -> io::Error {
        code.map_or_else(|| io::Error::other(text), io::Error::from_raw_os_error)
    }

    /// # Errors
    /// When the receiver has ended.
    pub(super) fn send(&self, link: &UnixStream) -> io::Result<()> {
        send(link, self)
    }

    /// Receives the next reply. Returns `None` when the guard has ended.
    ///
    /// # Errors
    /// When the message is invalid.
    pub(super) fn receive(link: &UnixStream) -> io::Result<Option<Self>> {
        read_frame(&mut &*link)?.map(|body| Ok(head(&body)?.0)).transpose()
    }
}

fn octets(text: &OsStr) -> Octets {
    Octets::of_path(Path::new(text))
}

fn send(mut link: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut frame = Vec::new();
    write_frame(&mut frame, message, NO_PAYLOAD)?;
    link.write_all(&frame)
}
