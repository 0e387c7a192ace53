//! The binary on a terminal of its own, with somebody who types.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::project::{Ended, Project, STATE};

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// The typist's side of a new pseudo-terminal and the program's. `openpty` would leave both of them to every program that
/// another test starts meanwhile.
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
    said: Arc<(Mutex<Said>, Condvar)>,
    reader: std::thread::JoinHandle<()>,
    /// Up to here it was waited for.
    seen: usize,
}

#[derive(Default)]
struct Said {
    bytes: Vec<u8>,
    is_over: bool,
}

/// Which streams are not the terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piped {
    Nothing,
    /// stdout is a pipe, which [`Terminal::end`] gives.
    Stdout,
    /// And stdin has nothing in it.
    StdinAndStdout,
}

impl Terminal {
    pub(crate) fn start(project: &Project, arguments: &[&str], piped: Piped) -> Self {
        Self::start_with(project, arguments, piped, STATE)
    }

    /// `state`: the folder of what is remembered.
    pub(crate) fn start_with(project: &Project, arguments: &[&str], piped: Piped, state: &str) -> Self {
        let (master, slave) = pseudo_terminal();
        let size = rustix::termios::Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&master, size).unwrap();
        let template = project.command(arguments);
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", "sh", "-c"]);
        // The shell gives its place to the binary, which leads the session.
        command.arg(if piped == Piped::StdinAndStdout { "exec \"$@\" </dev/null" } else { "exec \"$@\"" });
        command.arg("sh").arg(template.get_program()).args(template.get_args());
        command.current_dir(template.get_current_dir().unwrap());
        for (name, value) in template.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("TERM", "xterm").env("NO_COLOR", "1").env("XDG_STATE_HOME", state);
        command.stdin(slave.try_clone().unwrap()).stderr(slave.try_clone().unwrap());
        match piped {
            Piped::Nothing => command.stdout(slave.try_clone().unwrap()),
            Piped::Stdout | Piped::StdinAndStdout => command.stdout(Stdio::piped()),
        };
        let child = command.spawn().unwrap();
        // They hold the other ends.
        drop((command, slave));
        let said = Arc::new((Mutex::new(Said::default()), Condvar::new()));
        let (heard, mut listening) = (Arc::clone(&said), master.try_clone().unwrap());
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Linux answers EIO once the last other end is closed.
            while let Ok(count @ 1..) = listening.read(&mut bytes) {
                heard.0.lock().unwrap().bytes.extend_from_slice(&bytes[..count]);
                heard.1.notify_all();
            }
            heard.0.lock().unwrap().is_over = true;
            heard.1.notify_all();
        });
        Self { child, master, said, reader, seen: 0 }
    }

    /// Waits until this is on the terminal, after what was waited for before.
    pub(crate) fn wait_for(&mut self, text: &str) {
        let (said, changed) = &*self.said;
        let place = |said: &Said| {
            said.bytes[self.seen..].windows(text.len()).position(|window| window == text.as_bytes())
        };
        let is_open = |said: &mut Said| place(said).is_none() && !said.is_over;
        let (said, _) = changed.wait_timeout_while(said.lock().unwrap(), PATIENCE, is_open).unwrap();
        let Some(found) = place(&said) else {
            panic!("{text:?} is not in {:?}", String::from_utf8_lossy(&said.bytes))
        };
        self.seen += found + text.len();
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// What was on the terminal so far.
    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.0.lock().unwrap().bytes).into_owned()
    }

    /// Waits until keys are given as they are typed.
    pub(crate) fn wait_until_raw(&self) {
        let started = std::time::Instant::now();
        let is_raw = || {
            let now = nix::sys::termios::tcgetattr(&self.master).unwrap();
            !now.local_flags.contains(nix::sys::termios::LocalFlags::ICANON)
        };
        while !is_raw() {
            assert!(started.elapsed() < PATIENCE, "the terminal stays as it was");
            std::thread::yield_now();
        }
    }

    /// The typist's side, for looking at.
    pub(crate) fn master(&self) -> File {
        self.master.try_clone().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end; `stderr` is what was on the terminal.
    pub(crate) fn end(self) -> Ended {
        let output = self.child.wait_with_output().unwrap();
        drop(self.master);
        self.reader.join().unwrap();
        let stderr = String::from_utf8_lossy(&self.said.0.lock().unwrap().bytes).into_owned();
        Ended { code: output.status.code(), stdout: String::from_utf8(output.stdout).unwrap(), stderr }
    }
}
