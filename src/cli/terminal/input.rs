//! The user's terminal. Lines are read from it even if stdin is redirected. A read can be cancelled, so that it does
//! not consume later input.

use std::fs::File;
use std::io::{IsTerminal, Read, Result, Write};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::width;

/// Maximum length of a line in bytes.
const MAX_LINE: usize = 1 << 16;

pub(in crate::cli) struct Terminal {
    input: Arc<File>,
}

/// A pending read of one line. Dropping it cancels the read.
pub(in crate::cli) struct LineRead {
    line: oneshot::Receiver<Option<String>>,
    #[cfg(unix)]
    _open: std::os::fd::OwnedFd,
}

impl LineRead {
    /// Returns the line, or `None` at the end of the input.
    pub(in crate::cli) async fn line(&mut self) -> Option<String> {
        (&mut self.line).await.ok().flatten()
    }
}

impl Terminal {
    /// Opens the terminal. Returns `None` if there is no terminal or stderr is redirected.
    pub(in crate::cli) fn open() -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let name = if cfg!(windows) { "CONIN$" } else { "/dev/tty" };
        let input = File::open(name).ok().filter(IsTerminal::is_terminal)?;
        Some(Self { input: Arc::new(input) })
    }

    /// Writes to stderr.
    #[allow(clippy::unused_self)] // stderr is this terminal
    pub(in crate::cli) fn write(&self, text: &str) {
        let mut err = anstream::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    #[allow(clippy::unused_self)] // stderr is this terminal
    pub(in crate::cli) fn columns(&self) -> usize {
        width::columns(&std::io::stderr())
    }

    /// Discards input that was typed before the prompt.
    pub(in crate::cli) fn flush_input(&self) {
        flush_input(&*self.input);
    }

    /// Reads the next line on a new thread.
    ///
    /// # Errors
    /// If the thread or the pipe for cancellation cannot be created.
    #[cfg(unix)]
    pub(in crate::cli) fn read_line(&self) -> Result<LineRead> {
        let (closed, open) = rustix::pipe::pipe()?;
        let (sender, line) = oneshot::channel();
        let input = Arc::clone(&self.input);
        std::thread::Builder::new().name(String::from("deftool-ask")).spawn(move || {
            let _ = sender.send(read(&input, |input| wait(input, &closed)));
        })?;
        Ok(LineRead { line, _open: open })
    }

    /// Reads the next line on a new thread. The read cannot be cancelled.
    ///
    /// # Errors
    /// If the thread cannot be created.
    #[cfg(not(unix))]
    pub(in crate::cli) fn read_line(&self) -> Result<LineRead> {
        let (sender, line) = oneshot::channel();
        let input = Arc::clone(&self.input);
        std::thread::Builder::new().spawn(move || {
            let _ = sender.send(read(&input, |_| true));
        })?;
        Ok(LineRead { line })
    }
}

/// Discards the input of a terminal that was not read yet, so that it does not answer the next question. Input of a pipe
/// or a file is kept.
#[cfg(unix)]
pub(in crate::cli) fn flush_input(input: impl std::os::fd::AsFd) {
    // Fails if it is not a terminal.
    let _ = rustix::termios::tcflush(input, rustix::termios::QueueSelector::IFlush);
}

/// Does nothing: std cannot discard input on this platform.
#[cfg(not(unix))]
pub(in crate::cli) fn flush_input<S>(_: S) {}

/// Waits for input. Returns false if the read was cancelled.
#[cfg(unix)]
fn wait(input: &File, closed: &std::os::fd::OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};

    loop {
        let mut ends = [PollFd::new(input, PollFlags::IN), PollFd::new(closed, PollFlags::IN)];
        match poll(&mut ends, None) {
            Err(rustix::io::Errno::INTR) => {}
            // If polling is not supported, read directly.
            Err(_) => return true,
            Ok(_) => {
                let [input, closed] = &ends;
                if !closed.revents().is_empty() {
                    return false;
                }
                if !input.revents().is_empty() {
                    return true;
                }
            }
        }
    }
}

/// Reads a line. The terminal returns complete lines, and an empty read after Ctrl-D.
fn read(mut input: &File, wait: impl Fn(&File) -> bool) -> Option<String> {
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    while line.len() < MAX_LINE && wait(input) {
        match input.read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => line.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        if line.ends_with(b"\n") {
            return Some(String::from_utf8_lossy(&line).into_owned());
        }
    }
    None
}
