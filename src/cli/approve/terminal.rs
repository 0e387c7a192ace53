//! The terminal that somebody sits at: lines are read from it whatever stdin is, and a reading can be taken back, so that
//! it does not swallow what is typed after it.

use std::fs::File;
use std::io::{IsTerminal, Read, Result, Write};
use std::sync::Arc;

use tokio::sync::oneshot;

/// Longer lines are no answers.
const MAX_LINE: usize = 1 << 16;

/// What columns are taken for where nobody knows.
const COLUMNS: usize = 80;

pub(super) struct Terminal {
    input: Arc<File>,
}

/// A line on its way. Dropped, it is not read.
pub(super) struct Reading {
    line: oneshot::Receiver<Option<String>>,
    #[cfg(unix)]
    _open: std::os::fd::OwnedFd,
}

impl Reading {
    /// `None`: the terminal gave its end, or is gone.
    pub(super) async fn line(&mut self) -> Option<String> {
        (&mut self.line).await.ok().flatten()
    }
}

impl Terminal {
    /// `None`: nobody is there who could read a question.
    pub(super) fn open() -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let name = if cfg!(windows) { "CONIN$" } else { "/dev/tty" };
        let input = File::open(name).ok().filter(IsTerminal::is_terminal)?;
        Some(Self { input: Arc::new(input) })
    }

    /// Writes where everything is said.
    #[allow(clippy::unused_self)] // it is this terminal's
    pub(super) fn write(&self, text: &str) {
        let mut err = anstream::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    #[cfg(unix)]
    pub(super) fn columns(&self) -> usize {
        let size = rustix::termios::tcgetwinsize(&self.input).ok();
        size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(COLUMNS)
    }

    #[cfg(not(unix))]
    #[allow(clippy::unused_self)]
    pub(super) fn columns(&self) -> usize {
        COLUMNS
    }

    /// What was typed before the question is no answer to it.
    pub(super) fn flush_input(&self) {
        #[cfg(unix)]
        let _ = rustix::termios::tcflush(&self.input, rustix::termios::QueueSelector::IFlush);
    }

    /// Reads the next line, on a thread of its own.
    ///
    /// # Errors
    /// When there is no thread, or no pipe to take it back by.
    #[cfg(unix)]
    pub(super) fn read_line(&self) -> Result<Reading> {
        let (closed, open) = rustix::pipe::pipe()?;
        let (tell, line) = oneshot::channel();
        let input = Arc::clone(&self.input);
        std::thread::Builder::new().name(String::from("deftool-ask")).spawn(move || {
            let _ = tell.send(read(&input, |input| wait(input, &closed)));
        })?;
        Ok(Reading { line, _open: open })
    }

    /// Reads the next line, on a thread of its own. It cannot be taken back.
    ///
    /// # Errors
    /// When there is no thread.
    #[cfg(not(unix))]
    pub(super) fn read_line(&self) -> Result<Reading> {
        let (tell, line) = oneshot::channel();
        let input = Arc::clone(&self.input);
        std::thread::Builder::new().spawn(move || {
            let _ = tell.send(read(&input, |_| true));
        })?;
        Ok(Reading { line })
    }
}

/// Waits until there is something to read; false: the reading was taken back.
#[cfg(unix)]
fn wait(input: &File, closed: &std::os::fd::OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};

    loop {
        let mut ends = [PollFd::new(input, PollFlags::IN), PollFd::new(closed, PollFlags::IN)];
        match poll(&mut ends, None) {
            Err(rustix::io::Errno::INTR) => {}
            // What cannot be waited for is read at once.
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

/// A line, once there is one. The terminal gives lines, and an end where Ctrl-D is typed.
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
