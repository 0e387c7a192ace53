//! The program that analyses scripts.

use std::path::PathBuf;

/// What is missing without the analyzer, and how to get it.
pub(in crate::cli) const MISSING_ANALYZER: &str = "the program `deftool-analyze`, which is neither next to `deftool` nor \
    in PATH; install both in a checkout with `cargo install --path . --features analyze`";

/// Finds the analyzer: next to this program, or in `PATH`.
pub(in crate::cli) fn find_analyzer() -> Option<PathBuf> {
    let name = format!("deftool-analyze{}", std::env::consts::EXE_SUFFIX);
    let own = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Ignore relative entries of PATH: the current folder may be untrusted.
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    own.into_iter().chain(folders).map(|folder| folder.join(&name)).find(|file| file.is_file())
}
