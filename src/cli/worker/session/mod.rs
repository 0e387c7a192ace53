//! Stored conversations of `deftool chat` and `deftool acp`: one file per session, in one folder per project.

mod listed;
mod paths;
mod writer;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use deftool_record::session::{Line, Session};
use deftool_record::{Redaction, StoredFileError, StoredFileProblem};

use crate::cli::outcome::CliError;
use crate::cli::terminal::output::eprint_line;

pub(in crate::cli) use listed::ListedSession;
pub(in crate::cli) use paths::{
    all_sessions, history_file, is_markdown, named_session, new_name, parse_session_name, project_sessions,
    session_file_name, session_path, sessions_folder,
};
pub(in crate::cli) use writer::SessionWriter;

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
    let lines = std::iter::once(first).chain(session.settings()).collect();
    SessionWriter::pending(folder.join(name), lines, redaction)
}

/// Returns the error of a session that cannot be resumed.
pub(in crate::cli) fn resume_error(path: &Path, error: &StoredFileError) -> CliError {
    let (shown, hint) = (path.display(), "`deftool chat --list` lists the sessions");
    CliError::Usage(match error.problem {
        StoredFileProblem::Malformed { .. } if is_markdown(path) => format!(
            "{shown} is a Markdown copy; use `last` for the newest session of this project, or /save NAME.jsonl for a copy that can be loaded",
        ),
        _ if error.is_io(ErrorKind::NotFound) => format!("{error}; {hint}"),
        _ => error.to_string(),
    })
}
