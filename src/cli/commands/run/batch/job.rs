//! The lines of a batch: jobs in, results out.

use std::fs::File;
use std::path::{Path, PathBuf};

use deftool_chat::Usage;
use deftool_chat::request::{FailReason, FinalState, FinishReason, Outcome, Signal};
use deftool_worker::SubmitRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cli::outcome::CliError;
use crate::cli::terminal::stdin::{MAX_INPUT, read_bytes};
use crate::cli::worker::message::{NamedBy, user_message};

/// A file of jobs.
pub(super) struct JobFile {
    /// The name for messages.
    name: String,
    content: Vec<u8>,
}

/// A line with a job, which may be invalid.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobLine<'f> {
    file: &'f str,
    /// The number of the line. The first line is 1.
    number: usize,
    /// The index of the job in the batch.
    pub(super) index: usize,
    content: &'f [u8],
}

/// The members of a line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct Members {
    prompt: String,
    job_name: Option<String>,
    params: Option<Map<String, Value>>,
    files: Option<Vec<PathBuf>>,
}

impl JobFile {
    /// Reads a file, or stdin for `-`.
    ///
    /// # Errors
    /// If it cannot be read, or contains no line.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let (name, content) = if path.as_os_str() == "-" {
            (String::from("stdin"), read_bytes(std::io::stdin(), MAX_INPUT))
        } else {
            let opened = File::open(path).map_err(|error| format!("cannot be read: {error}"));
            (path.display().to_string(), opened.and_then(|file| read_bytes(file, MAX_INPUT)))
        };
        let mut content = content.map_err(|why| CliError::Usage(format!("--batch: {name} {why}")))?;
        if content.starts_with(b"\xef\xbb\xbf") {
            content.drain(..3);
        }
        let file = Self { name, content };
        if file.lines().next().is_none() {
            return Err(CliError::Usage(format!("--batch: {} contains no jobs", file.name)));
        }
        Ok(file)
    }

    /// Returns the jobs in order. Blank lines are skipped.
    pub(super) fn lines(&self) -> impl Iterator<Item = JobLine<'_>> {
        let lines = self.content.split(|byte| *byte == b'\n').zip(1..);
        let lines = lines.filter(|(line, _)| !line.trim_ascii().is_empty());
        lines.enumerate().map(|(index, (content, number))| JobLine {
            file: &self.name,
            number,
            index,
            content,
        })
    }
}

impl JobLine<'_> {
    /// Returns the request of the job. `defaults`: the options for all jobs.
    ///
    /// # Errors
    /// If the line is not a job, or one of its files cannot be read: the name of the job, or an empty one, and the message.
    pub(super) async fn request(&self, defaults: &SubmitRequest) -> Result<SubmitRequest, (String, String)> {
        let job = serde_json::from_slice(self.content);
        let Members { prompt, job_name, params, files } =
            job.map_err(|error| (String::new(), self.syntax_error(&error)))?;
        let (job_name, files) = (job_name.unwrap_or_default(), files.unwrap_or_default());
        let message = if prompt.trim().is_empty() && files.is_empty() {
            Err(String::from("the prompt is empty"))
        } else {
            // Not in the event loop: the other jobs and signals go on.
            let message = move || user_message(prompt, (&files, NamedBy::Line), String::new());
            let read = tokio::task::spawn_blocking(message).await;
            read.unwrap_or_else(|error| Err(error.to_string()))
        };
        match message {
            Ok(message) => {
                let (messages, params) = (vec![message], params.unwrap_or_default());
                Ok(SubmitRequest { messages, job_name, params, ..defaults.clone() })
            }
            Err(message) => Err((job_name, self.error(&message))),
        }
    }

    /// Returns the message of an error of JSON, with the position in the file.
    fn syntax_error(&self, error: &serde_json::Error) -> String {
        let (message, column) = (error.to_string(), error.column());
        let position = format!(" at line {} column {column}", error.line());
        let message = message.strip_suffix(&position).unwrap_or(&message);
        let invalid = if error.is_data() { "" } else { "not JSON: " };
        format!("{}:{}:{column}: {invalid}{message}", self.file, self.number)
    }

    /// Returns a message with the position of the job.
    pub(super) fn error(&self, message: &str) -> String {
        format!("{}:{}: {message}", self.file, self.number)
    }
}

/// The result of a job, as a line of the output. `docs/schemas/batch.json` describes it.
#[derive(Debug, Serialize)]
pub(super) struct JobResult {
    /// The index of the job in the batch. The first one is 0.
    pub(super) index: usize,
    pub(super) job_name: String,
    /// The last request of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_id: Option<String>,
    pub(super) state: FinalState,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<FinishReason>,
    answer: String,
    /// The arguments of the exit call of `--result`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Value>,
    /// The signals of all requests of the job.
    pub(super) signals: Vec<Signal>,
    /// The tokens of all requests of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<JobError>,
}

/// The reason why a job failed.
#[derive(Debug, Serialize)]
pub(super) struct JobError {
    pub(super) kind: String,
    pub(super) message: String,
}

impl JobResult {
    /// Creates the result of a job whose request was not submitted.
    pub(super) fn not_submitted(index: usize, job_name: &str, kind: &str, message: String) -> Self {
        Self {
            index,
            job_name: job_name.to_owned(),
            request_id: None,
            state: FinalState::Failed,
            finish_reason: None,
            answer: String::new(),
            result: None,
            signals: Vec::new(),
            usage: None,
            error: Some(JobError { kind: kind.to_owned(), message }),
        }
    }

    /// Creates the result of a job from the outcome of its last request, without signals and usage.
    pub(super) fn of(index: usize, job_name: &str, request_id: String, outcome: &Outcome) -> Self {
        let error = (outcome.state == FinalState::Failed).then(|| {
            let reason = outcome.fail_reason.unwrap_or(FailReason::UnknownError);
            JobError {
                kind: outcome.kind.clone().unwrap_or_else(|| reason.as_str().to_owned()),
                message: outcome.detail.clone().unwrap_or_default(),
            }
        });
        Self {
            index,
            job_name: job_name.to_owned(),
            request_id: Some(request_id),
            state: outcome.state,
            finish_reason: Some(outcome.finish_reason),
            answer: outcome.text.clone(),
            result: None,
            signals: Vec::new(),
            usage: None,
            error,
        }
    }
}
