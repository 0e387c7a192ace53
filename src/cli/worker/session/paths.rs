//! Paths of sessions: one folder per project, in the user's state folder.
//!
//! Sessions are not stored in the project, because they are private and must not be committed or shared.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use deftool_lang::text::fnv1a;

use crate::cli::outcome::CliError;
use crate::cli::project::trust::state_folder;

/// The name of the newest session of a project.
const LAST: &str = "last";

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
    session_file_name(&format!("{now}-{:04x}", fastrand::u16(..)))
}

/// Returns whether a copy with this path is written as Markdown.
pub(in crate::cli) fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

/// Maximum length of the name of a session.
const MAX_NAME: usize = 64;

/// Names that Windows reserves for devices, in lower case. Some are followed by a digit.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// Parses the name of a session: one that is a safe file name on every system.
///
/// # Errors
/// If the name contains other characters, is too long, or is reserved.
pub(in crate::cli) fn parse_session_name(name: &str) -> Result<String, String> {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins || name.len() > MAX_NAME || !name.chars().all(is_safe) {
        return Err(format!(
            "expected at most {MAX_NAME} letters (a-z), digits, `-` and `_`, with a letter or digit first"
        ));
    }
    let device = name.to_ascii_lowercase();
    let device = device.trim_end_matches(|c: char| c.is_ascii_digit());
    if name == LAST || DEVICES.contains(&device) {
        return Err(format!("`{name}` is reserved; choose another name"));
    }
    Ok(name.to_owned())
}

/// Returns the name of the file of a session.
pub(in crate::cli) fn session_file_name(name: &str) -> String {
    format!("{name}.jsonl")
}

/// Returns the path of the session `name` of the project at `root`, which may not exist.
pub(in crate::cli) fn named_session(root: &Path, name: &str) -> Option<PathBuf> {
    Some(sessions_folder(root)?.join(session_file_name(name)))
}

/// Returns the path of a session: a file, or else a name. `last` is the newest session of the project, except `current`.
pub(in crate::cli) fn session_path(
    name: &Path,
    root: &Path,
    current: Option<&Path>,
) -> Result<PathBuf, CliError> {
    if name != Path::new(LAST) {
        let safe = name.to_str().and_then(|name| parse_session_name(name).ok()).filter(|_| !name.exists());
        let named = safe.and_then(|name| named_session(root, &name)).filter(|path| path.exists());
        return Ok(named.unwrap_or_else(|| name.to_owned()));
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
fn newest(folder: &Path, current: Option<&Path>) -> Option<PathBuf> {
    let is_current = |path: &Path| current.is_some() && path.canonicalize().ok().as_deref() == current;
    sessions_in(folder).filter(|(_, path)| !is_current(path)).max().map(|(_, path)| path)
}

/// Returns the sessions of all projects with the times of their last changes, last change first.
pub(in crate::cli) fn all_sessions() -> Vec<(SystemTime, PathBuf)> {
    let folders = state_folder().and_then(|folder| std::fs::read_dir(folder.join("sessions")).ok());
    let folders = folders.into_iter().flatten().flatten();
    last_first(folders.flat_map(|folder| sessions_in(&folder.path())))
}

/// Returns the sessions of the project at `root` with the times of their last changes, last change first.
pub(in crate::cli) fn project_sessions(root: &Path) -> Vec<(SystemTime, PathBuf)> {
    last_first(sessions_folder(root).into_iter().flat_map(|folder| sessions_in(&folder)))
}

fn last_first(sessions: impl Iterator<Item = (SystemTime, PathBuf)>) -> Vec<(SystemTime, PathBuf)> {
    let mut sessions: Vec<_> = sessions.collect();
    sessions.sort_unstable_by(|one, other| other.cmp(one));
    sessions
}

/// Returns the sessions in `folder` with the times of their last changes.
fn sessions_in(folder: &Path) -> impl Iterator<Item = (SystemTime, PathBuf)> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let path = entry.path();
        let metadata = entry.metadata().ok()?;
        let is_session = metadata.is_file() && path.extension().is_some_and(|extension| extension == "jsonl");
        is_session.then(|| (metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), path))
    })
}
