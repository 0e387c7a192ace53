//! Log lines of scripts on stderr: printed at once or, while a request is followed, in order with its events.

use std::sync::{Mutex, PoisonError};

use deftool_engine::script_line;
use deftool_script::{LogLevel, ScriptEvent, ScriptSink};
use deftool_worker::Worker;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::cli::terminal::output::{eprint_line, wait_for_stderr};

/// The receiver of log lines while a request is followed, and the worker of the request.
static SUBSCRIBER: Mutex<Option<(UnboundedSender<String>, Worker)>> = Mutex::new(None);

/// Returns a sink that prints progress and log lines of level info and above.
pub(in crate::cli) fn sink() -> ScriptSink {
    ScriptSink::new(|event| {
        if matches!(event, ScriptEvent::Logged { level: LogLevel::Debug, .. }) {
            return;
        }
        let line = script_line(&event);
        // Do not hold the lock while printing: the write may block.
        let subscriber = SUBSCRIBER.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match subscriber {
            Some((lines, worker)) => {
                if let ScriptEvent::Logged { request_id, call_id, level, text, .. } = &event {
                    worker.log(request_id, call_id, *level, text);
                }
                // The number of lines per call is limited, so the channel stays small.
                drop(lines.send(line));
            }
            None => eprint_line(&line),
        }
    })
}

/// A subscription to the log lines of scripts. Scripts log on their own threads and may be ahead of the printed text.
pub(in crate::cli) struct ScriptLines {
    queue: UnboundedReceiver<String>,
    received: Option<String>,
}

impl ScriptLines {
    /// Also adds the lines to the recordings and the journal of `worker`.
    pub(in crate::cli) fn subscribe(worker: &Worker) -> Self {
        let (lines, queue) = unbounded_channel();
        *SUBSCRIBER.lock().unwrap_or_else(PoisonError::into_inner) = Some((lines, worker.clone()));
        Self { queue, received: None }
    }

    /// Returns the next line, one poll after its arrival: a caller that polls events first has then received those
    /// that precede the line. Can be canceled without losing a line.
    pub(in crate::cli) async fn next(&mut self) -> String {
        if self.received.is_none() {
            self.received = self.queue.recv().await;
            tokio::task::yield_now().await;
        }
        match self.received.take() {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }

    /// Prints the queued lines.
    pub(in crate::cli) async fn print_queued(&mut self) {
        while let Some(line) = self.pop() {
            wait_for_stderr().await;
            eprint_line(&line);
        }
    }

    fn pop(&mut self) -> Option<String> {
        self.received.take().or_else(|| self.queue.try_recv().ok())
    }
}

impl Drop for ScriptLines {
    fn drop(&mut self) {
        *SUBSCRIBER.lock().unwrap_or_else(PoisonError::into_inner) = None;
        while let Some(line) = self.pop() {
            eprint_line(&line);
        }
    }
}
