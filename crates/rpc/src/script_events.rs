//! The log lines and the progress of scripts, for the client and for the journal.

use std::sync::Arc;

use deftool_script::ScriptEvent;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::workers::Workers;

/// Maximum number of log lines and progress reports that wait for a slow client. More are dropped.
const MAX_EVENTS: usize = 1024;

/// The queue of the log lines and the progress of scripts.
pub struct ScriptEvents {
    pub(crate) sender: mpsc::Sender<Queued>,
    pub(crate) receiver: mpsc::Receiver<Queued>,
    /// The workers whose journals receive the log lines.
    pub(crate) workers: Arc<Workers>,
}

/// An element of the queue.
pub(crate) enum Queued {
    Event(ScriptEvent),
    /// Answered when all earlier events were sent to the client.
    Flush(oneshot::Sender<()>),
}

/// Creates a queue for the events of scripts. The function adds an event without blocking. It also adds a log line to the
/// journal of its request, before the script continues: the journal then contains the lines of each finished call.
pub fn script_events() -> (impl Fn(ScriptEvent) + Send + Sync, ScriptEvents) {
    let (sender, receiver) = mpsc::channel(MAX_EVENTS);
    let (queue, workers) = (sender.clone(), Arc::<Workers>::default());
    let known = Arc::clone(&workers);
    let send = move |event| {
        if let ScriptEvent::Logged { request_id, call_id, level, text, .. } = &event
            && let Some(worker) = known.of_request(request_id)
        {
            worker.log(request_id, call_id, *level, text);
        }
        if let Err(TrySendError::Full(_)) = queue.try_send(Queued::Event(event)) {
            tracing::warn!("dropped an event of a script: the client does not read");
        }
    };
    (send, ScriptEvents { sender, receiver, workers })
}
