//! Stored conversations of `deftool chat` and `deftool acp`: one file per session, in one folder per project.

mod file;
mod model;
mod paths;
mod read;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use deftool_record::{Redaction, RequestTimeline, Timeline};

use crate::cli::outcome::CliError;
use crate::cli::terminal::output::eprint_line;

pub(in crate::cli) use file::{SessionFile, resume_error};
pub(in crate::cli) use model::{Line, Session};
pub(in crate::cli) use paths::{
    all_sessions, history_file, is_markdown, named_session, new_name, parse_session_name, session_file_name,
    session_path, sessions_folder,
};
pub(in crate::cli) use read::{SessionError, SessionPart};
pub(in crate::cli) use writer::SessionWriter;

/// Returns the first line of the session file of a conversation that starts now.
pub(in crate::cli) fn header(root: &Path, worker: &str, model: &str) -> Line {
    Line::Chat {
        version: model::VERSION,
        created_at_ms: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64),
        project: root.display().to_string(),
        worker: worker.to_owned(),
        model: model.to_owned(),
    }
}

/// Returns the writer of a new session in the project's session folder. The file `name` is created with the first
/// message.
pub(in crate::cli) fn begin(
    root: &Path,
    name: &str,
    first: Line,
    session: &Session,
    redaction: Arc<Redaction>,
) -> SessionWriter {
    let Some(folder) = sessions_folder(root) else {
        eprint_line("note: this session is not stored, because neither XDG_STATE_HOME nor HOME is set");
        return SessionWriter::disabled(redaction);
    };
    let mut lines = vec![first];
    if session.system.is_some() {
        lines.push(Line::System { text: session.system.clone() });
    }
    lines.extend(session.model.clone().map(|name| Line::Model { name }));
    SessionWriter::pending(folder.join(name), lines, redaction)
}

/// Returns the requests of a session for `view`.
///
/// # Errors
/// If the file cannot be read or is not a session.
pub(in crate::cli) fn timeline(path: &Path) -> Result<Timeline, CliError> {
    let read = SessionPart::read(path).map_err(|error| CliError::Usage(error.to_string()))?;
    let SessionPart { first, model, messages, damage, is_cut } = read;
    let about = match first {
        Line::Chat { created_at_ms, worker, model: of_worker, .. } => RequestTimeline {
            worker,
            model: model.unwrap_or(of_worker),
            submitted_at_ms: created_at_ms,
            ..RequestTimeline::default()
        },
        _ => RequestTimeline::default(),
    };
    let mut damage: Vec<String> = damage.iter().map(ToString::to_string).collect();
    if is_cut {
        damage.push(format!("{}: the last line is incomplete", path.display()));
    }
    Ok(Timeline { damage, ..Timeline::of_conversation(&about, messages) })
}
