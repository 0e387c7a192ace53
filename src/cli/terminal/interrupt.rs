//! Signals that end a command: Ctrl-C (SIGINT), SIGTERM and SIGHUP. All are handled like Ctrl-C, so that no child
//! process is left behind.

use std::io::Result;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

use super::output::is_writing;

/// If an interrupt is not handled for this time during a write, the write is considered blocked.
const BLOCKED_WRITE_DELAY: Duration = Duration::from_secs(1);

/// Waits for the first signal. Requires a tokio runtime.
pub(in crate::cli) async fn interrupted() -> Result<()> {
    Signals::listen()?.next().await;
    Ok(())
}

/// The number of the first received signal; 0 if none was received.
static FIRST: AtomicU8 = AtomicU8::new(0);

/// A signal listener, active from its creation. The first signal decides the exit code.
pub(in crate::cli) struct Signals(deftool_engine::Signals);

impl Signals {
    pub(in crate::cli) fn listen() -> Result<Self> {
        deftool_engine::Signals::listen().map(Self)
    }

    pub(in crate::cli) async fn next(&mut self) {
        let number = self.0.next().await;
        let _ = FIRST.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// A queue of interrupts (Ctrl-C and other signals), so that none is missed between two waits. A thread fills it, because
/// a blocked write may block the runtime.
pub(in crate::cli) struct Interrupts(tokio::sync::mpsc::Receiver<()>);

impl Interrupts {
    pub(in crate::cli) fn listen() -> std::io::Result<Self> {
        let (sender, receiver) = tokio::sync::mpsc::channel(2);
        start_thread(async move |mut signals| {
            let mut next_check = Instant::now();
            loop {
                let has_interrupt = sender.capacity() < sender.max_capacity();
                tokio::select! {
                    () = sender.closed() => break,
                    () = signals.next() => {
                        if !has_interrupt {
                            next_check = Instant::now() + BLOCKED_WRITE_DELAY;
                        }
                        // A full queue already contains two interrupts; more have no effect.
                        if let Err(TrySendError::Closed(())) = sender.try_send(()) {
                            break;
                        }
                    }
                    () = tokio::time::sleep_until(next_check), if has_interrupt => {
                        if is_writing() {
                            end_now();
                        }
                        next_check = Instant::now() + BLOCKED_WRITE_DELAY;
                    }
                }
            }
        })?;
        Ok(Self(receiver))
    }

    /// Discards interrupts that were intended for a finished request.
    pub(in crate::cli) fn drain(&mut self) {
        while self.0.try_recv().is_ok() {}
    }

    pub(in crate::cli) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Whether the first signal was Ctrl-C of the user, who wants to end the request. Other signals only end the process.
pub(in crate::cli) fn is_by_user() -> bool {
    FIRST.load(Ordering::Relaxed) == 2
}

/// Returns the exit code of an interrupted command: 128 plus the number of the signal, 130 without one.
pub(in crate::cli) fn exit_code() -> u8 {
    match FIRST.load(Ordering::Relaxed) {
        0 => 130,
        number => 128 + number,
    }
}

/// Ends the process, and the programs of its scripts, at the next signal. For work that cannot be cancelled.
pub(in crate::cli) fn end_when_interrupted() -> Result<()> {
    start_thread(async |mut signals| {
        signals.next().await;
        end_now();
    })
}

/// Runs `handle` on a new thread. The listener is active before this function returns.
fn start_thread(handle: impl AsyncFnOnce(Signals) + Send + 'static) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _entered = runtime.enter();
        Signals::listen()?
    };
    let run = move || runtime.block_on(handle(signals));
    std::thread::Builder::new().name(String::from("deftool-interrupt")).spawn(run)?;
    Ok(())
}

/// Whether a signal is ending the process. Calls whose programs it killed have failed.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Whether a signal is ending the process.
pub(in crate::cli) fn is_ending() -> bool {
    IS_ENDING.load(Ordering::SeqCst)
}

/// Ends the process and the programs of its scripts.
pub(in crate::cli) fn end_now() -> ! {
    IS_ENDING.store(true, Ordering::SeqCst);
    deftool_process::kill_programs();
    std::process::exit(i32::from(exit_code()));
}
