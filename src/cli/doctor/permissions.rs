//! What tools may use against what the project is trusted with, and where that is remembered.

use std::io::ErrorKind;
use std::path::Path;

use super::{Line, counted, environment, list};
use crate::cli::trust::{
    Store, StoreError, doubt, endpoint_wishes, not_remembered, server_wishes, state_folder,
};
use crate::project::{Generation, Wish, wishes};
use crate::text::count;

pub(super) fn check(generation: &Generation) -> Line {
    let mut wanted = wishes(&generation.load, generation.tools());
    let tools = wanted.len();
    let asks = endpoint_wishes(&generation.load, |name| environment(name).is_some());
    let keys = asks.iter().filter(|wish| !wish.grants.env.is_empty()).count();
    let others = asks.len() - keys;
    wanted.extend(asks);
    let starts = server_wishes(&generation.load);
    let servers = starts.len();
    wanted.extend(starts);
    if wanted.is_empty() {
        return Line::ok("trust", "not needed: nothing wants more than to read the project");
    }
    let missing = Wish::lines(&not_remembered(generation, wanted));
    if missing.is_empty() {
        let many = counted(tools, "tool");
        let also = |workers: usize, what: &str| match workers {
            0 => String::new(),
            workers => format!(", and {} may {what}", count(workers, "worker")),
        };
        let (keys, servers) = (also(keys, "send a key"), also(servers, "start a server"));
        let others = also(others, "talk to a server elsewhere");
        return Line::ok(
            "trust",
            format!("granted: {many} may use more than the project's own files{keys}{others}{servers}"),
        );
    }
    let message = format!("not granted: {}", list(&missing));
    Line::warning("trust", message, "read the specs, then `deftool trust grant`")
}

/// The state folder, as it is; nothing is made.
pub(super) fn check_state() -> Line {
    let Some(folder) = state_folder() else {
        let message = "none: neither XDG_STATE_HOME nor HOME names a folder, so nothing is remembered";
        return Line::warning("state", message, "set HOME");
    };
    let shown = folder.display();
    let metadata = match std::fs::metadata(&folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return not_there_yet(&folder),
        Err(error) => {
            return Line::error("state", format!("{shown}: {error}"), "make it readable for this user");
        }
    };
    if !metadata.is_dir() {
        return Line::error(
            "state",
            format!("{shown} is no folder"),
            "move it away; deftool makes the folder",
        );
    }
    if let Some(why) = doubt(&metadata) {
        let message = format!("{shown} {why}, so what it holds is not believed");
        return Line::error("state", message, format!("make it this user's alone: `chmod 700 {shown}`"));
    }
    if !is_writable(&folder) {
        return Line::error("state", format!("{shown} is not writable"), format!("`chmod 700 {shown}`"));
    }
    match Store::of_user().read() {
        Ok(projects) => Line::ok("state", format!("{shown}: {} trusted", count(projects.len(), "project"))),
        Err(error @ StoreError::Damaged { .. }) => {
            Line::warning("state", error.to_string(), "`deftool trust grant` in each project that you trust")
        }
        Err(error) => Line::error("state", error.to_string(), "mend or remove the file"),
    }
}

fn not_there_yet(folder: &Path) -> Line {
    let shown = folder.display();
    let above = folder.ancestors().skip(1).find(|folder| folder.exists());
    if above.is_some_and(is_writable) {
        return Line::ok(
            "state",
            format!("{shown} is not there yet; it is made when something is remembered"),
        );
    }
    let message = format!("{shown} is not there and cannot be made, so nothing is remembered");
    Line::warning("state", message, "make the folder above it writable, or set XDG_STATE_HOME")
}

/// Whether this user may put files there.
#[cfg(unix)]
pub(super) fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// As far as the file's own mark says.
#[cfg(not(unix))]
pub(super) fn is_writable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.permissions().readonly())
}
