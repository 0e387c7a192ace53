//! The real binary with `--watch`.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use super::project::command_in;

/// Maximum wait in tests.
pub(crate) const LIMIT: Duration = deftool_test_support::HANG_LIMIT;

/// A command with `--watch`, which is killed on drop.
pub(crate) struct WatchProcess {
    pub(crate) child: Child,
    pub(crate) stdout: Receiver<String>,
    pub(crate) stderr: Receiver<String>,
}

impl Drop for WatchProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}

impl WatchProcess {
    /// Starts `command --watch` in a folder.
    pub(crate) fn start(folder: &Path, command: &str, arguments: &[&str]) -> Self {
        let mut command = command_in(folder, &[&[command, "--watch"], arguments].concat());
        Self::of(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Wraps a command with pipes for stdout and stderr.
    pub(crate) fn of(mut child: Child) -> Self {
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// Returns the next line of JSON output.
    pub(crate) fn report(&self) -> Value {
        serde_json::from_str(&self.stdout.recv_timeout(LIMIT).unwrap()).unwrap()
    }

    /// Waits for a line on stderr that ends with `end`.
    pub(crate) fn wait_for_stderr(&self, end: &str) {
        loop {
            let line = self.stderr.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("nothing ends in {end:?}"));
            if line.ends_with(end) {
                return;
            }
        }
    }
}
