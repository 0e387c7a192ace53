//! Programs by their path or in PATH.

use std::path::{Path, PathBuf};

/// Finds a program by its path or in PATH.
pub(in crate::cli) fn find_program(name: &str, root: &Path) -> Option<PathBuf> {
    if Path::new(name).components().count() > 1 {
        return Some(root.join(name)).filter(|path| is_program(path));
    }
    let path = std::env::var_os("PATH")?;
    let names: Vec<String> = if cfg!(windows) {
        [".exe", ".cmd", ".bat", ""].iter().map(|ending| format!("{name}{ending}")).collect()
    } else {
        vec![name.to_owned()]
    };
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)).collect::<Vec<_>>())
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    #[cfg(unix)]
    let may_run = rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    #[cfg(not(unix))]
    let may_run = true;
    may_run && path.is_file()
}
