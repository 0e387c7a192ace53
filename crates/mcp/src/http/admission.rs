//! The limits of connections. A connection is admitted with the first request that is accepted, which requires the token.
//! Before, it must not cost admitted clients anything: it has a short deadline and a limit of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of admitted connections. A client uses one for each running request.
const MAX_ADMITTED: usize = 256;

/// Maximum number of connections that are not admitted yet. At the limit, a further one waits until one of them is admitted
/// or ends, or until the oldest has existed for [`MIN_WAIT`] and is closed.
const MAX_UNKNOWN: usize = 256;

/// Time in which a connection must be admitted.
const ADMISSION_LIMIT: Duration = Duration::from_secs(5);

/// Time that each connection has to send its request, however many others wait.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// The connections of a server.
pub(super) struct Connections {
    permits: Arc<Semaphore>,
    /// Those that are not admitted yet, oldest first.
    unknown: Mutex<VecDeque<Arc<Connection>>>,
    /// Notified when a connection is removed from `unknown`.
    removed: Notify,
}

/// The state of a connection.
pub(super) struct Connection {
    since: Instant,
    permit: OnceLock<OwnedSemaphorePermit>,
    admitted: CancellationToken,
    closed: CancellationToken,
}

impl Connections {
    pub(super) fn new() -> Self {
        let permits = Arc::new(Semaphore::new(MAX_ADMITTED));
        Self { permits, unknown: Mutex::default(), removed: Notify::new() }
    }

    /// Waits until a further connection may be accepted.
    pub(super) async fn ready(&self) {
        while let Some(oldest) = self.oldest_at_limit() {
            tokio::select! {
                biased;
                () = self.removed.notified() => {}
                () = tokio::time::sleep_until(oldest.since + MIN_WAIT) => {
                    oldest.closed.cancel();
                    self.remove(&oldest);
                }
            }
        }
    }

    fn oldest_at_limit(&self) -> Option<Arc<Connection>> {
        let unknown = self.unknown();
        if unknown.len() < MAX_UNKNOWN { None } else { unknown.front().cloned() }
    }

    /// Adds a connection.
    pub(super) fn add(&self) -> Arc<Connection> {
        let connection = Arc::new(Connection {
            since: Instant::now(),
            permit: OnceLock::new(),
            admitted: CancellationToken::new(),
            closed: CancellationToken::new(),
        });
        self.unknown().push_back(Arc::clone(&connection));
        connection
    }

    /// Admits a connection that sent an acceptable request. Returns `false` if there are too many.
    pub(super) fn admit(&self, connection: &Arc<Connection>) -> bool {
        if connection.permit.get().is_some() {
            return true;
        }
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else { return false };
        self.remove(connection);
        connection.admitted.cancel();
        connection.permit.set(permit).is_ok()
    }

    /// Serves a connection until its end.
    pub(super) async fn serve(&self, connection: &Arc<Connection>, served: impl Future) {
        let mut served = std::pin::pin!(served);
        // In this order: a request that has arrived is read before the connection is closed.
        let is_admitted = tokio::select! {
            biased;
            _ = &mut served => false,
            () = connection.admitted.cancelled() => true,
            () = connection.closed.cancelled() => false,
            () = tokio::time::sleep(ADMISSION_LIMIT) => false,
        };
        self.remove(connection);
        if is_admitted {
            served.await;
        }
    }

    fn remove(&self, connection: &Arc<Connection>) {
        self.unknown().retain(|known| !Arc::ptr_eq(known, connection));
        self.removed.notify_one();
    }

    fn unknown(&self) -> MutexGuard<'_, VecDeque<Arc<Connection>>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
