//! A child process that answers messages over a socket, one at a time, and is killed if it does not answer in time.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::frame::{NO_PAYLOAD, head, read_frame, write_frame};

/// The child process. Killed when dropped.
pub struct Peer {
    process: Child,
    link: UnixStream,
}

impl Peer {
    /// Starts `program` with an empty environment. Its stdin and stdout are the socket.
    ///
    /// # Errors
    /// When the program does not start.
    pub fn start(program: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<Self> {
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

    /// Sends `message` and waits for the answer.
    ///
    /// # Errors
    /// `None` when the child takes longer than `limit` to read the message or to answer it. An error when the child has
    /// ended or its answer is invalid. The child cannot be used again in either case.
    pub fn ask<A: DeserializeOwned>(
        &mut self,
        message: &impl Serialize,
        limit: Duration,
    ) -> Result<A, Option<io::Error>> {
        let mut frame = Vec::new();
        write_frame(&mut frame, message, NO_PAYLOAD).map_err(Some)?;
        Timed::new(&self.link, limit).write_all(&frame).map_err(unless_timed_out)?;
        self.receive(limit)
    }

    /// Waits for the next message of the child.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub fn receive<A: DeserializeOwned>(&mut self, limit: Duration) -> Result<A, Option<io::Error>> {
        let body = read_frame(&mut Timed::new(&self.link, limit)).map_err(unless_timed_out)?;
        let body = body.ok_or_else(|| Some(io::Error::other("the process exited")))?;
        Ok(head::<A>(&body).map_err(Some)?.0)
    }
}

/// A socket with one deadline for all its reads and writes together.
struct Timed<'l> {
    link: &'l UnixStream,
    until: Instant,
}

impl<'l> Timed<'l> {
    fn new(link: &'l UnixStream, limit: Duration) -> Self {
        Self { link, until: Instant::now() + limit }
    }

    /// Returns the time left.
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.link.set_read_timeout(Some(self.left()?))?;
        self.link.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.link.set_write_timeout(Some(self.left()?))?;
        self.link.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn unless_timed_out(error: io::Error) -> Option<io::Error> {
    (!matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)).then_some(error)
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
