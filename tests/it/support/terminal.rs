//! Runs the binary on a pseudo-terminal with simulated input.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::project::{Ended, Project, STATE};

/// Time limit of each wait.
const TIMEOUT: Duration = deftool_test_support::HANG_LIMIT;

/// Creates a pseudo-terminal and returns its master and slave. `openpty` is not used, because its file descriptors
/// would be inherited by processes that other tests start.
pub(crate) fn pseudo_terminal() -> (File, File) {
    use nix::fcntl::OFlag;

    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let master = nix::pty::posix_openpt(flags).unwrap();
    nix::pty::grantpt(&master).unwrap();
    nix::pty::unlockpt(&master).unwrap();
    let name = nix::pty::ptsname_r(&master).unwrap();
    let slave = File::options().read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits()).open(name);
    (File::from(OwnedFd::from(master)), slave.unwrap())
}

/// A session whose controlling terminal is a pseudo-terminal.
pub(crate) struct Terminal {
    child: Child,
    master: File,
    output: Arc<(Mutex<Output>, Condvar)>,
    reader: std::thread::JoinHandle<()>,
    /// The end of the text that was waited for.
    seen: usize,
}

#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    is_closed: bool,
}

/// Which streams are not the terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piped {
    Nothing,
    /// stdout is a pipe; [`Terminal::end`] returns its content.
    Stdout,
    /// stdout is a pipe, and stdin is empty.
    StdinAndStdout,
}

impl Terminal {
    pub(crate) fn start(project: &Project, arguments: &[&str], piped: Piped) -> Self {
        Self::start_with(project, arguments, piped, STATE)
    }

    /// Starts the binary with the state folder `state`.
    pub(crate) fn start_with(project: &Project, arguments: &[&str], piped: Piped, state: &str) -> Self {
        let mut command = project.command(arguments);
        command.env("XDG_STATE_HOME", state);
        Self::run(&command, piped)
    }

    /// Starts a program.
    pub(crate) fn run(template: &Command, piped: Piped) -> Self {
        let (master, slave) = pseudo_terminal();
        let size = rustix::termios::Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&master, size).unwrap();
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", "sh", "-c"]);
        // The shell executes the binary, which becomes the session leader.
        command.arg(if piped == Piped::StdinAndStdout { "exec \"$@\" </dev/null" } else { "exec \"$@\"" });
        command.arg("sh").arg(template.get_program()).args(template.get_args());
        command.current_dir(template.get_current_dir().unwrap());
        for (name, value) in template.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        command.stdin(slave.try_clone().unwrap()).stderr(slave.try_clone().unwrap());
        match piped {
            Piped::Nothing => command.stdout(slave.try_clone().unwrap()),
            Piped::Stdout | Piped::StdinAndStdout => command.stdout(Stdio::piped()),
        };
        let child = command.spawn().unwrap();
        // Close the other ends.
        drop((command, slave));
        let output = Arc::new((Mutex::new(Output::default()), Condvar::new()));
        let (shared, mut input) = (Arc::clone(&output), master.try_clone().unwrap());
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Linux returns EIO after the last slave is closed.
            while let Ok(count @ 1..) = input.read(&mut bytes) {
                shared.0.lock().unwrap().bytes.extend_from_slice(&bytes[..count]);
                shared.1.notify_all();
            }
            shared.0.lock().unwrap().is_closed = true;
            shared.1.notify_all();
        });
        Self { child, master, output, reader, seen: 0 }
    }

    /// Waits until the terminal shows `text`, after the text of the last wait.
    pub(crate) fn wait_for(&mut self, text: &str) {
        let (output, changed) = &*self.output;
        let place = |output: &Output| {
            output.bytes[self.seen..].windows(text.len()).position(|window| window == text.as_bytes())
        };
        let is_open = |output: &mut Output| place(output).is_none() && !output.is_closed;
        let (output, _) = changed.wait_timeout_while(output.lock().unwrap(), TIMEOUT, is_open).unwrap();
        let Some(found) = place(&output) else {
            panic!("{text:?} is not in {:?}", String::from_utf8_lossy(&output.bytes))
        };
        self.seen += found + text.len();
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Returns all output so far.
    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&self.output.0.lock().unwrap().bytes).into_owned()
    }

    /// Waits until the terminal is in raw mode.
    pub(crate) fn wait_until_raw(&self) {
        let started = std::time::Instant::now();
        let is_raw = || {
            let now = nix::sys::termios::tcgetattr(&self.master).unwrap();
            !now.local_flags.contains(nix::sys::termios::LocalFlags::ICANON)
        };
        while !is_raw() {
            assert!(started.elapsed() < TIMEOUT, "the terminal is not in raw mode");
            std::thread::yield_now();
        }
    }

    /// Returns the master of the pseudo-terminal.
    pub(crate) fn master(&self) -> File {
        self.master.try_clone().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the process. `stderr` of the result is all terminal output.
    pub(crate) fn end(self) -> Ended {
        let output = self.child.wait_with_output().unwrap();
        drop(self.master);
        self.reader.join().unwrap();
        let stderr = String::from_utf8_lossy(&self.output.0.lock().unwrap().bytes).into_owned();
        Ended { code: output.status.code(), stdout: String::from_utf8(output.stdout).unwrap(), stderr }
    }
}
