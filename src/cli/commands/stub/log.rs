//! `--log`: writes every request as a line of JSON. Requests contain conversations, so the file is private to the user.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use deftool_process::files::create_output;
use deftool_record::is_secret_name;
use deftool_stub::Received;
use serde_json::{Map, Value, json};

use crate::cli::outcome::CliError;
use crate::cli::terminal::output::eprint_error;

/// The first bytes of every log.
const BEGINNING: &str = r#"{"at_ms":"#;

/// An open log.
pub(super) struct Log {
    /// `None` after a write error, which was reported.
    file: Mutex<Option<File>>,
    started: Instant,
}

impl Log {
    /// Creates the file, or truncates an existing log.
    ///
    /// # Errors
    /// If the file cannot be written, or is not a log.
    pub(super) fn create(path: &Path) -> Result<Self, CliError> {
        let unwritable = |source| CliError::Unwritable { path: path.display().to_string(), source };
        let file = create_output(path, "stub log", BEGINNING).map_err(unwritable)?;
        Ok(Self { file: Mutex::new(Some(file)), started: Instant::now() })
    }

    /// Writes a request, the status of its answer and its mismatch with the scenario, if any.
    pub(super) fn write(&self, request: &Received, status: Option<u16>, wrong: Option<&str>) {
        if let Ok(mut log) = self.file.lock()
            && let Some(file) = log.as_mut()
            && let Err(error) = file.write_all(line(request, status, wrong, self.started).as_bytes())
        {
            eprint_error(&format!("cannot write the log: {error}"));
            *log = None;
        }
    }
}

/// Formats a request as a line of JSON.
fn line(request: &Received, status: Option<u16>, wrong: Option<&str>, started: Instant) -> String {
    let headers: Map<String, Value> = request
        .headers
        .iter()
        .map(|(name, value)| {
            let is_secret = is_secret_name(name) || name == "cookie";
            let shown = if is_secret { "(not logged)" } else { value };
            (name.clone(), json!(shown))
        })
        .collect();
    let at_ms = request.at.saturating_duration_since(started).as_millis() as u64;
    let mut line = json!({
        "at_ms": at_ms, "method": request.method(), "path": request.path(), "status": status,
        "headers": headers, "body": request.body,
    });
    if let (Value::Object(members), Some(wrong)) = (&mut line, wrong) {
        members.insert(String::from("wrong"), json!(wrong));
    }
    format!("{line}\n")
}
