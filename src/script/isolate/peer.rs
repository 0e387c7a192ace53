//! A child process that answers one message after the other over a socket, each in time or it is killed.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::protocol::{ALONE, head, read_frame, write_frame};

/// The child; killed when dropped.
pub(in crate::script) struct Peer {
    process: Child,
    link: UnixStream,
}

impl Peer {
    /// Starts `program`, without any environment; its stdin and stdout are the socket.
    ///
    /// # Errors
    /// When it does not start.
    pub(in crate::script) fn start(
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> io::Result<Self> {
        let (link, theirs) = UnixStream::pair()?;
        let process = Command::new(program)
            .args(arguments)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs.try_clone()?)))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { process, link })
    }

    /// Sends `message` and waits for an answer.
    ///
    /// # Errors
    /// `None` when none comes within `limit`. Then, or when the child is gone or makes no sense, it is of no more use.
    pub(in crate::script) fn ask<A: DeserializeOwned>(
        &mut self,
        message: &impl Serialize,
        limit: Duration,
    ) -> Result<A, Option<io::Error>> {
        let mut frame = Vec::new();
        write_frame(&mut frame, message, ALONE).map_err(Some)?;
        self.link.set_write_timeout(Some(limit)).map_err(Some)?;
        self.link.write_all(&frame).map_err(unless_late)?;
        self.hear(limit)
    }

    /// Waits for what the child says next.
    ///
    /// # Errors
    /// As above.
    pub(in crate::script) fn hear<A: DeserializeOwned>(
        &mut self,
        limit: Duration,
    ) -> Result<A, Option<io::Error>> {
        self.link.set_read_timeout(Some(limit)).map_err(Some)?;
        let body = read_frame(&mut self.link).map_err(unless_late)?;
        let body = body.ok_or_else(|| Some(io::Error::other("it died")))?;
        Ok(head::<A>(&body).map_err(Some)?.0)
    }
}

fn unless_late(error: io::Error) -> Option<io::Error> {
    (!matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)).then_some(error)
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
