//! Keeps the connection to one server.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use rmcp::{Peer, RoleClient};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::connection::{Connection, end_of, soon, wait_for_exit};
use super::convert::tools_of;
use super::server::{Server, Status};

/// Wait before the first attempt to connect again. Doubles with each attempt.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// Longest wait between two attempts.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// A connection that lived this long resets the wait.
const STABLE: Duration = Duration::from_secs(60);

/// Connects to `server`, and connects again after the connection was lost, until `stop`.
pub(super) async fn supervise(server: Arc<Server>, stop: CancellationToken) {
    let mut delay = FIRST_DELAY;
    loop {
        let started = Instant::now();
        let Some(reason) = connect(&server, &stop).await else { return };
        if started.elapsed() > STABLE {
            delay = FIRST_DELAY;
        }
        let before = server.status.send_replace(Status::Lost(reason.clone()));
        // The first failure is an error of the start.
        if matches!(before, Status::Starting) {
            if !server.options.is_required {
                return;
            }
        } else {
            server.report(&format!("{reason}; trying again in {delay:?}"));
        }
        tokio::select! {
            () = sleep(delay) => {}
            () = stop.cancelled() => return,
        }
        delay = MAX_DELAY.min(delay * 2);
    }
}

/// Uses one connection until it is lost. Returns the reason; `None`: stopped.
async fn connect(server: &Arc<Server>, stop: &CancellationToken) -> Option<String> {
    let warned = Arc::clone(server);
    let warn = Arc::new(move |problem| warned.report_once(problem));
    let opened = tokio::select! {
        opened = Connection::open(&server.options, warn) => opened,
        () = stop.cancelled() => return None,
    };
    let Connection { peer, service, changes, lister, mut program } = match opened {
        Ok(connection) => connection,
        Err(reason) => return Some(reason),
    };
    let close = service.cancellation_token();
    let closed = service.waiting();
    tokio::pin!(closed);
    let used = async {
        list(server, &peer).await?;
        server.status.send_replace(Status::Connected(peer.clone(), changes.clone()));
        let watching = tokio::spawn(Connection::watch_tools(peer.clone()));
        let _watching = AbortOnDropHandle::new(watching);
        loop {
            let announced = changes.to_list().await;
            list(server, &peer).await?;
            lister.send_replace(announced);
        }
    };
    let reason: Result<Infallible, String> = tokio::select! {
        reason = used => reason,
        reason = end_of(&mut program) => Err(reason),
        _ = &mut closed => {
            Err(soon(&mut program).await.unwrap_or_else(|| String::from("closed the connection")))
        }
        () = stop.cancelled() => {
            close.cancel();
            let _ = closed.await;
            wait_for_exit(program).await;
            return None;
        }
    };
    reason.err()
}

/// Lists the tools of a server and publishes them. Their schemas are compiled in another thread, because a hostile one may
/// take long.
///
/// # Errors
/// If the server does not list them. The error is a clause that omits the name of the server.
async fn list(server: &Arc<Server>, peer: &Peer<RoleClient>) -> Result<(), String> {
    let (listing, of) = (Connection::list(&server.options, peer).await?, Arc::clone(server));
    let converted = tokio::task::spawn_blocking(move || tools_of(&of.options, &listing.tools)).await;
    let (tools, problems) = converted.map_err(|error| error.to_string())?;
    server.set_tools(tools, problems.into_iter().chain(listing.problem).collect());
    Ok(())
}
