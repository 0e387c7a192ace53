//! Serves the clients of `deftool rpc` and `deftool acp`. stdin belongs to the client, so nothing is asked there.

use std::io::{self, IsTerminal};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::terminal::interrupt::Signals;
use crate::cli::terminal::output::eprint_line;

/// Time limit for blocked threads at the end: one may wait for stdin.
const LAST_WORK: Duration = Duration::from_millis(100);

/// Serves a client on stdin and stdout until it is gone or a signal arrives. `client` names it for a user who runs the
/// command in a terminal.
///
/// # Errors
/// If the connection fails.
pub(in crate::cli) fn serve_client<S>(
    client: &str,
    serve: impl FnOnce(CancellationToken) -> S,
) -> Result<Exit, CliError>
where
    S: Future<Output = io::Result<()>>,
{
    if io::stdin().is_terminal() {
        eprint_line(&format!(
            "note: {client} starts this command and sends messages on stdin; press Ctrl-C to stop"
        ));
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CliError::Runtime)?;
    let served = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let stop = CancellationToken::new();
        let serving = serve(stop.clone());
        tokio::pin!(serving);
        tokio::select! {
            served = &mut serving => served.map(|()| Exit::Clean),
            () = signals.next() => {
                stop.cancel();
                serving.await.map(|()| Exit::Interrupted)
            }
        }
    });
    runtime.shutdown_timeout(LAST_WORK);
    served.map_err(CliError::Runtime)
}
