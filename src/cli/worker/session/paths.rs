//! Paths of sessions: one folder per project, in the user's state folder.
//!
//! Sessions are not stored in the project, because they are private and must not be committed or shared.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use deftool_lang::text::fnv1a;

use crate::cli::outcome::CliError;
use crate::cli::project::trust::state_folder;

/// Returns the session folder of the project at `root`; `None` if there is no state folder.
pub(in crate::cli) fn sessions_folder(root: &Path) -> Option<PathBuf> {
    let name: String = root
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        .take(40)
        .collect();
    let hash = fnv1a(root.as_os_str().as_encoded_bytes().iter().copied());
    let folder = format!("{}-{hash:016x}", name.trim_start_matches('.'));
    Some(state_folder()?.join("sessions").join(folder))
}

/// Returns the path of the input history.
pub(in crate::cli) fn history_file() -> Option<PathBuf> {
    Some(state_folder()?.join("chat_history"))
}

/// Returns the file name of a new session. Names sort by start time.
pub(in crate::cli) fn new_name() -> String {
    let now = jiff::Zoned::now().strftime("%Y-%m-%dT%H-%M-%S").to_string();
    format!("{now}-{:04x}.jsonl", fastrand::u16(..))
}

/// Returns whether a copy with this path is written as Markdown.
pub(in crate::cli) fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

/// Returns the path of a session. `last` is the newest session of the project, except `current`.
pub(in crate::cli) fn session_path(
    name: &Path,
    root: &Path,
    current: Option<&Path>,
) -> Result<PathBuf, CliError> {
    if name != Path::new("last") {
        return Ok(name.to_owned());
    }
    let newest = sessions_folder(root).and_then(|folder| newest(&folder, current));
    newest.ok_or_else(|| {
        CliError::Usage(String::from(match current {
            Some(_) => "no other session of this project",
            None => "no session of this project; start one with `deftool chat`",
        }))
    })
}

/// Returns the most recently written session in `folder`, except `current`, which is a canonical path.
pub(in crate::cli) fn newest(folder: &Path, current: Option<&Path>) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let sessions = entries.filter_map(|entry| {
        let path = entry.path();
        let metadata = entry.metadata().ok()?;
        let is_session = metadata.is_file() && path.extension().is_some_and(|extension| extension == "jsonl");
        let is_current = current.is_some() && path.canonicalize().ok().as_deref() == current;
        (is_session && !is_current).then(|| (metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), path))
    });
    sessions.max().map(|(_, path)| path)
}
