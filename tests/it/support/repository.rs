//! The files of this repository.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the files that match git's pathspecs and are not ignored, sorted: what the installation of other programs left
/// in a folder is not among them.
pub(crate) fn repository_files(patterns: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut list = Command::new("git");
    list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).args(patterns);
    let names = String::from_utf8(list.current_dir(root).output().unwrap().stdout).unwrap();
    // A deleted file is listed until the commit.
    let files = names.split_terminator('\0').map(|name| root.join(name)).filter(|path| path.is_file());
    let mut files: Vec<_> = files.collect();
    files.sort();
    files
}
