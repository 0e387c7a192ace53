//! Signals that end a program: Ctrl-C (SIGINT), SIGTERM and SIGHUP. All end it in the same way, so that no child process is
//! left behind, and that what has a journal can be continued.

use std::io::Result;
use std::task::Poll;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC as Signal, ctrl_c};

/// A signal listener, active from its creation. Each signal has its number.
pub struct Signals(Vec<(Signal, u8)>);

impl Signals {
    /// Starts to listen. Requires a tokio runtime.
    ///
    /// # Errors
    /// If the system does not allow it.
    #[cfg(unix)]
    pub fn listen() -> Result<Self> {
        let mut kinds = vec![(SignalKind::interrupt(), 2), (SignalKind::terminate(), 15)];
        // Respect `nohup`.
        if !is_hangup_ignored() {
            kinds.push((SignalKind::hangup(), 1));
        }
        kinds.into_iter().map(|(kind, number)| Ok((signal(kind)?, number))).collect::<Result<_>>().map(Self)
    }

    /// Starts to listen. Requires a tokio runtime.
    ///
    /// # Errors
    /// If the system does not allow it.
    #[cfg(windows)]
    pub fn listen() -> Result<Self> {
        Ok(Self(vec![(ctrl_c()?, 2)]))
    }

    /// Waits for the next signal, and returns its number.
    pub async fn next(&mut self) -> u8 {
        let next = std::future::poll_fn(|context| {
            let received = self.0.iter_mut().find_map(|(signal, number)| {
                (signal.poll_recv(context) == Poll::Ready(Some(()))).then_some(*number)
            });
            received.map_or(Poll::Pending, Poll::Ready)
        });
        next.await
    }
}

/// Returns whether SIGHUP is ignored. Returns false if `/proc` is not available.
#[cfg(unix)]
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Bit 0 is signal 1, SIGHUP.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
