//! What ends a command from outside: Ctrl-C, the system (SIGTERM), a terminal that is closed (SIGHUP). All end it as Ctrl-C does,
//! so that nothing it started stays behind.

use std::io::Result;
use std::task::Poll;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC as Signal, ctrl_c};

/// Waits for the first; needs a runtime.
pub(super) async fn interrupted() -> Result<()> {
    Signals::listen()?.next().await;
    Ok(())
}

/// Heard from the moment it is made.
pub(super) struct Signals(Vec<Signal>);

impl Signals {
    #[cfg(unix)]
    pub(super) fn listen() -> Result<Self> {
        let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
        // `nohup` means what it says.
        if !is_hangup_ignored() {
            kinds.push(SignalKind::hangup());
        }
        kinds.into_iter().map(signal).collect::<Result<_>>().map(Self)
    }

    #[cfg(windows)]
    pub(super) fn listen() -> Result<Self> {
        Ok(Self(vec![ctrl_c()?]))
    }

    pub(super) async fn next(&mut self) {
        let next = std::future::poll_fn(|context| {
            let is_heard = self.0.iter_mut().any(|signal| signal.poll_recv(context) == Poll::Ready(Some(())));
            if is_heard { Poll::Ready(()) } else { Poll::Pending }
        });
        next.await;
    }
}

/// The exit code of a command that was ended so.
pub(super) const CODE: u8 = 130;

/// From now on that ends the process at once, with the programs of its scripts: for work that cannot be stopped otherwise.
pub(super) fn end_when_interrupted() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _entered = runtime.enter();
        Signals::listen()?
    };
    let wait = move || {
        runtime.block_on(signals.next());
        end_now();
    };
    std::thread::Builder::new().name(String::from("deftool-interrupt")).spawn(wait)?;
    Ok(())
}

/// Ends the process, with the programs of its scripts.
pub(super) fn end_now() -> ! {
    crate::script::kill_programs();
    std::process::exit(i32::from(CODE));
}

/// As Linux tells it; elsewhere it is taken for not ignored.
#[cfg(unix)]
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is that of signal 1.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
