//! The data and functions that the host program provides.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deftool_process::lock;
use deftool_worker::Worker;
use futures_util::future::BoxFuture;
use restate_sdk::errors::{HandlerError, TerminalError};

use crate::bridge::RestateJournal;
use crate::workers::OpenFailure;

/// The data and functions that the host program provides for the services.
pub struct Host {
    open_worker: OpenWorker,
    pub(crate) journal: Arc<RestateJournal>,
    report: Report,
    /// The failures that were reported, by message.
    reported: Mutex<HashMap<String, Instant>>,
}

/// Opens the worker of a name, or the only worker of the project.
pub type OpenWorker =
    Box<dyn Fn(Option<&str>) -> BoxFuture<'static, Result<Worker, OpenFailure>> + Send + Sync>;

/// Writes a line for the operator.
type Report = Box<dyn Fn(&str) + Send + Sync>;

/// The same failure is reported once in this time, because Restate repeats attempts several times a second.
const QUIET: Duration = Duration::from_secs(60);
/// Maximum number of different failures in this time.
const MAX_REPORTED: usize = 100;

/// The reason why an attempt to execute a request failed.
pub(crate) struct Failure {
    message: String,
    /// The HTTP status with which the request ends; `None`: Restate repeats the attempt.
    status: Option<u16>,
}

impl Failure {
    pub(crate) fn ends(status: u16, message: impl ToString) -> Self {
        Self { message: message.to_string(), status: Some(status) }
    }

    pub(crate) fn repeats(message: impl ToString) -> Self {
        Self { message: message.to_string(), status: None }
    }

    /// The failure of a request that has not begun. One that has begun waits for a process with its worker.
    pub(crate) fn of_new(failure: OpenFailure) -> Self {
        let status = match failure {
            OpenFailure::Unknown(_) => 404,
            OpenFailure::Unavailable(_) => 503,
        };
        Self::ends(status, failure)
    }
}

impl Host {
    /// `open_worker` opens a worker whose journal is `journal`; it is called each time a request begins or continues in
    /// this process. `report` writes a line for each failed attempt.
    pub fn new(
        open_worker: OpenWorker,
        journal: Arc<RestateJournal>,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self { open_worker, journal, report: Box::new(report), reported: Mutex::default() }
    }

    pub(crate) async fn open(&self, worker: Option<&str>) -> Result<Worker, OpenFailure> {
        (self.open_worker)(worker).await
    }

    /// Reports the failure of a request, and returns it for Restate.
    pub(crate) fn fail(&self, id: &str, failure: Failure) -> HandlerError {
        let Failure { message, status } = failure;
        if self.is_new(&message) {
            let effect = match status {
                Some(status) => format!("the client receives the status {status}"),
                None => String::from("Restate repeats the attempt"),
            };
            (self.report)(&format!("request {id}: {message}; {effect}"));
        }
        match status {
            Some(status) => TerminalError::new_with_code(status, message).into(),
            None => message.into(),
        }
    }

    fn is_new(&self, message: &str) -> bool {
        let (now, mut reported) = (Instant::now(), lock(&self.reported));
        reported.retain(|_, at| now.duration_since(*at) < QUIET);
        reported.len() < MAX_REPORTED && reported.insert(message.to_owned(), now).is_none()
    }
}
