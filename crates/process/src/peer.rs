//! A child process that answers messages, one line of JSON each, and is killed if it does not answer in time.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum length of an answer, in bytes.
const MAX_LINE: u64 = 64 << 20;

/// The child process. Killed when dropped.
///
/// Threads write and read its lines: a child that reads nothing, or ends no line, does not block the caller.
pub struct Peer {
    process: Child,
    messages: SyncSender<Vec<u8>>,
    lines: Receiver<io::Result<Vec<u8>>>,
}

impl Peer {
    /// Starts `program` with an empty environment. It reads messages from stdin and writes answers to stdout.
    ///
    /// # Errors
    /// When the program does not start.
    pub fn start(program: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<Self> {
        let mut process = Command::new(program)
            .args(arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (messages, unsent) = sync_channel::<Vec<u8>>(1);
        let (received, lines) = sync_channel(1);
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let peer = Self { process, messages, lines };
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        if let Some(mut input) = input {
            // The thread ends when the peer is dropped, or when the child no longer reads.
            thread("deftool-peer-in").spawn(move || {
                while let Ok(message) = unsent.recv() {
                    if input.write_all(&message).and_then(|()| input.flush()).is_err() {
                        return;
                    }
                }
            })?;
        }
        if let Some(output) = output {
            thread("deftool-peer-out").spawn(move || read_lines(output, &received))?;
        }
        Ok(peer)
    }

    /// Sends `message` and waits for the answer.
    ///
    /// # Errors
    /// `None` when the child takes longer than `limit` to read the message and to answer it. An error when the child has
    /// ended or its answer is invalid. The child cannot be used again in either case.
    pub fn ask<A: DeserializeOwned>(
        &mut self,
        message: &impl Serialize,
        limit: Duration,
    ) -> Result<A, Option<io::Error>> {
        let mut line = serde_json::to_vec(message).map_err(|error| Some(error.into()))?;
        line.push(b'\n');
        self.messages.send(line).map_err(|_| Some(exited()))?;
        self.receive(limit)
    }

    /// Waits for the next message of the child.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub fn receive<A: DeserializeOwned>(&mut self, limit: Duration) -> Result<A, Option<io::Error>> {
        let line = match self.lines.recv_timeout(limit) {
            Ok(line) => line.map_err(Some)?,
            Err(RecvTimeoutError::Timeout) => return Err(None),
            Err(RecvTimeoutError::Disconnected) => return Err(Some(exited())),
        };
        serde_json::from_slice(&line).map_err(|error| Some(error.into()))
    }
}

/// Passes the lines of `output` on, and the error that ends them.
fn read_lines(output: impl Read, lines: &SyncSender<io::Result<Vec<u8>>>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let line = match (&mut output).take(MAX_LINE).read_until(b'\n', &mut line) {
            Err(error) => Err(error),
            Ok(_) if line.ends_with(b"\n") => Ok(line),
            Ok(_) if line.len() as u64 == MAX_LINE => {
                Err(io::Error::other(format!("an answer is longer than {MAX_LINE} bytes")))
            }
            Ok(_) => Err(exited()),
        };
        let ends = line.is_err();
        if lines.send(line).is_err() || ends {
            return;
        }
    }
}

fn exited() -> io::Error {
    io::Error::other("the process exited")
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_child_answers_or_is_given_up() {
        let limit = Duration::from_secs(20);
        let mut echo = Peer::start(Path::new("/bin/cat"), [""; 0]).unwrap();
        for text in ["a\nb", "é", &"x".repeat(1 << 20)] {
            assert_eq!(echo.ask::<String>(&text, limit).unwrap(), text);
        }
        assert_eq!(echo.ask::<u32>(&"text", limit).unwrap_err().unwrap().kind(), io::ErrorKind::InvalidData);
        // More than a pipe holds, and nothing is read.
        let mut deaf = Peer::start(Path::new("/bin/sleep"), ["60"]).unwrap();
        let unread = "x".repeat(1 << 20);
        assert!(deaf.ask::<String>(&unread, Duration::from_millis(10)).unwrap_err().is_none());
        let mut ended = Peer::start(Path::new("/bin/sh"), ["-c", "printf no-line"]).unwrap();
        let error = ended.receive::<String>(limit).unwrap_err().unwrap();
        assert_eq!(error.to_string(), "the process exited");
    }
}
