//! The engine's IO threads. The IO of host functions runs here, never on a script's thread.
//!
//! Another script may block a script's thread at any time; a connection or a child process that is driven there would
//! stall with it. There is one small runtime per process, which starts on first use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, mpsc};

use deftool_lang::tool::ToolErrorKind;
use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

use super::error::HostError;

/// Number of threads that drive IO. Blocking work runs on additional threads.
const THREADS: usize = 2;

static RUNTIME: LazyLock<Result<Runtime, String>> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("deftool-io")
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
});

/// Runs `work` to its end. Dropping the future aborts it at its next await point.
///
/// # Errors
/// When the threads cannot start, or `work` panics: [`ToolErrorKind::Internal`].
pub(super) async fn run<T: Send + 'static>(
    work: impl Future<Output = Result<T, HostError>> + Send + 'static,
) -> Result<T, HostError> {
    let handle = AbortOnDropHandle::new(runtime()?.spawn(work));
    handle.await.unwrap_or_else(|error| Err(internal(&error.to_string())))
}

/// Runs the blocking `work` to its end. Once started it cannot be stopped: dropping the future only detaches it.
///
/// # Errors
/// As [`run`].
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    let handle = AbortOnDropHandle::new(runtime()?.spawn_blocking(work));
    handle.await.unwrap_or_else(|error| Err(internal(&error.to_string())))
}

/// Cancels blocking work when it is dropped: sets the flag that the work checks.
#[derive(Default)]
pub(super) struct CancelOnDrop(pub(super) Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` to its end, detached from the caller.
///
/// # Errors
/// When the threads cannot start.
pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Result<(), HostError> {
    drop(runtime()?.spawn(work));
    Ok(())
}

/// Runs `work` to its end and blocks this thread, which must not be one of the IO threads.
///
/// # Errors
/// When the threads cannot start, or `work` panics: [`ToolErrorKind::Internal`].
pub(super) fn wait<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, HostError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    spawn(async move { drop(sender.send(work.await)) })?;
    receiver.recv().map_err(|error| internal(&error.to_string()))
}

fn runtime() -> Result<&'static Runtime, HostError> {
    RUNTIME.as_ref().map_err(|error| internal(error))
}

fn internal(error: &str) -> HostError {
    HostError { kind: ToolErrorKind::Internal, message: format!("the IO threads failed: {error}") }
}
