//! The user's state folder: where it is, and whether what stands in it is the user's own word.
//!
//! `$XDG_STATE_HOME/deftool` where that is set (XDG Base Directory Specification 0.8: a relative value is ignored), else
//! what the system has for it.

use std::fs::{DirBuilder, Metadata};
use std::path::{Path, PathBuf};

/// The folder, there or not; `None` where nothing says who the user is.
pub(in crate::cli) fn state_folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_STATE_HOME").or_else(|| {
        if cfg!(windows) {
            absolute("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            absolute("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            absolute("HOME").map(|home| home.join(".local/state"))
        }
    });
    base.map(|base| base.join("deftool"))
}

/// Makes the folder, for its user alone, where it is not there.
pub(super) fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Why what others may have written is not believed; `None` if only this user can have.
#[cfg(unix)]
pub(in crate::cli) fn doubt(metadata: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;

    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Some("belongs to another user");
    }
    (metadata.mode() & 0o022 != 0).then_some("may be written by others (`chmod go-w` takes that from them)")
}

/// Windows gives a user's folders to that user alone.
#[cfg(not(unix))]
pub(in crate::cli) fn doubt(_: &Metadata) -> Option<&'static str> {
    None
}
