//! The engine's own threads for IO: what a host function waits for happens here, never on a script's thread.
//!
//! A script's thread may be held by another script at any time; a connection or a child process that was driven there
//! would stall with it. One small runtime per process, started when it is first needed.

use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

use super::error::HostError;
use crate::tool::ToolErrorKind;

/// Threads that drive IO; blocking work has threads of its own beside them.
const THREADS: usize = 2;

static RUNTIME: LazyLock<Result<Runtime, String>> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("deftool-io")
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
});

/// Runs `work` to its end; dropping the future aborts it at its next wait.
///
/// # Errors
/// When the threads cannot start, or `work` panics: [`ToolErrorKind::Internal`].
pub(super) async fn run<T: Send + 'static>(
    work: impl Future<Output = Result<T, HostError>> + Send + 'static,
) -> Result<T, HostError> {
    let handle = AbortOnDropHandle::new(runtime()?.spawn(work));
    handle.await.unwrap_or_else(|error| Err(internal(&error.to_string())))
}

/// Runs `work`, which blocks, to its end. Once begun it cannot be stopped: dropping the future only forgets it.
///
/// # Errors
/// As [`run`].
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    let handle = AbortOnDropHandle::new(runtime()?.spawn_blocking(work));
    handle.await.unwrap_or_else(|error| Err(internal(&error.to_string())))
}

/// Runs `work` to its end, whoever goes away meanwhile.
///
/// # Errors
/// When the threads cannot start.
pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Result<(), HostError> {
    drop(runtime()?.spawn(work));
    Ok(())
}

fn runtime() -> Result<&'static Runtime, HostError> {
    RUNTIME.as_ref().map_err(|error| internal(error))
}

fn internal(error: &str) -> HostError {
    HostError { kind: ToolErrorKind::Internal, message: format!("the engine's IO threads failed: {error}") }
}
