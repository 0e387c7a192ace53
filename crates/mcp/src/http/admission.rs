//! The limits of connections. A connection is admitted with the first request that is accepted, which requires the token.
//! Before, it must not cost admitted clients anything: it has a short deadline and a limit of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Maximum number of admitted connections. A client uses one for each running request.
const MAX_ADMITTED: usize = 256;

/// Maximum number of connections that are not admitted yet. A further one closes the oldest, so a client that sends its
/// request at once is always admitted.
const MAX_UNKNOWN: usize = 64;

/// Time in which a connection must be admitted.
const ADMISSION_LIMIT: Duration = Duration::from_secs(5);

/// The connections of a server.
pub(super) struct Connections {
    permits: Arc<Semaphore>,
    /// Those that are not admitted yet, oldest first.
    unknown: Mutex<VecDeque<Arc<Connection>>>,
}

/// The state of a connection.
#[derive(Default)]
pub(super) struct Connection {
    permit: OnceLock<OwnedSemaphorePermit>,
    admitted: CancellationToken,
    closed: CancellationToken,
}

impl Connections {
    pub(super) fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(MAX_ADMITTED)), unknown: Mutex::default() }
    }

    /// Adds a connection.
    pub(super) fn add(&self) -> Arc<Connection> {
        let connection = Arc::new(Connection::default());
        let mut unknown = self.unknown();
        unknown.push_back(Arc::clone(&connection));
        if unknown.len() > MAX_UNKNOWN
            && let Some(oldest) = unknown.pop_front()
        {
            oldest.closed.cancel();
        }
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
        let is_admitted = tokio::select! {
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
    }

    fn unknown(&self) -> MutexGuard<'_, VecDeque<Arc<Connection>>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
