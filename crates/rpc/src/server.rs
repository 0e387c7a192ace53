//! The loop of the server: reads messages, and ends everything when the client is gone.

use std::io::{BufReader, Read};
use std::time::Duration;

use deftool_jsonrpc::{Framing, Id, Message, Reader, Received};
use serde_json::json;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::host::Host;
use crate::script_events::ScriptEvents;
use crate::session::Session;

/// Maximum number of messages that are read ahead.
const MAX_READ_AHEAD: usize = 16;

/// Time limit for writing the last messages to a client that does not read.
const LAST_MESSAGES: Duration = Duration::from_secs(2);

/// Serves one client until it sends `shutdown`, until `input` ends or `output` fails, or until `stop` is canceled.
/// Then cancels all requests, and waits for the end of managed servers. Must be called in a multi-threaded runtime.
///
/// # Errors
/// If the thread that reads `input` cannot be started.
pub async fn serve(
    host: Host,
    script_events: ScriptEvents,
    input: impl Read + Send + 'static,
    output: impl AsyncWrite + Send + 'static,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let (sender, mut messages) = mpsc::channel(MAX_READ_AHEAD);
    let reader = std::thread::Builder::new().name(String::from("deftool-rpc-reader"));
    // The thread ends with the input. It is not joined: it may wait for input that never comes.
    reader.spawn(move || read(input, &sender))?;
    let first = tokio::select! {
        first = messages.recv() => first,
        () = stop.cancelled() => None,
    };
    // A client that never sent a message gets none.
    let Some((framing, first)) = first else { return Ok(()) };
    let (client, end) = Client::start(output, framing);
    let session = Session::start(host, script_events, client.clone());
    let shutdown = tokio::select! {
        shutdown = handle(&session, first, &mut messages) => shutdown,
        () = end.cancelled() => None,
        () = stop.cancelled() => None,
    };
    session.stop().await;
    let deadline = Instant::now() + LAST_MESSAGES;
    let _ = timeout_at(deadline, session.tasks.wait()).await;
    if let Some(id) = shutdown {
        client.respond(id, Ok(json!({})));
    }
    client.close();
    let _ = timeout_at(deadline, end.cancelled()).await;
    Ok(())
}

fn read(input: impl Read, messages: &Sender<(Framing, Received)>) {
    let mut reader = Reader::new(BufReader::new(input));
    while let Ok(Some(received)) = reader.receive() {
        let framing = reader.framing().unwrap_or(Framing::Lines);
        if messages.blocking_send((framing, received)).is_err() {
            return;
        }
    }
}

/// Handles messages until the end of the input. Returns the ID of a `shutdown` request.
async fn handle(
    session: &Session,
    first: Received,
    messages: &mut Receiver<(Framing, Received)>,
) -> Option<Id> {
    let mut next = Some(first);
    while let Some(received) = next {
        match received {
            Received::Message(Message::Request { id, method, .. }) if method == "shutdown" => {
                return Some(id);
            }
            Received::Message(message) => session.handle(message).await,
            Received::Invalid(response) => {
                session.client.room().await;
                session.client.send(&response);
            }
        }
        next = messages.recv().await.map(|(_, received)| received);
    }
    None
}
