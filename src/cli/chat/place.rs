//! Where sessions are kept: in the user's state folder, each project in a folder of its own.
//!
//! Not in the project: what people say to a model is theirs, and does not belong into what is committed and shared.

use std::fs::DirBuilder;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::super::trust::state_folder;

/// The folder of the sessions of the project at `root`; `None` where nothing says who the user is.
pub(super) fn sessions_folder(root: &Path) -> Option<PathBuf> {
    let name: String = root
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        .take(40)
        .collect();
    let folder =
        format!("{}-{:016x}", name.trim_start_matches('.'), fnv1a(root.as_os_str().as_encoded_bytes()));
    Some(state_folder()?.join("sessions").join(folder))
}

/// The history of what was typed.
pub(super) fn history_file() -> Option<PathBuf> {
    Some(state_folder()?.join("chat_history"))
}

/// A name for a session that begins now: they sort by their beginnings.
pub(super) fn new_name() -> String {
    let now = jiff::Zoned::now().strftime("%Y-%m-%dT%H-%M-%S").to_string();
    format!("{now}-{:04x}.jsonl", fastrand::u16(..))
}

/// Whether a copy of this name is for reading.
pub(super) fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

/// The session in `folder` that was written last, beside the one at `current`, which has no links in it.
pub(super) fn newest(folder: &Path, current: Option<&Path>) -> Option<PathBuf> {
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

/// Makes a folder for its user alone, where it is not there.
pub(super) fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// The hash of Fowler, Noll and Vo, 64 bits: a name that is the same in every version.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
