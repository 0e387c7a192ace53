//! Required and granted permissions of the project, and the state folder that stores them.

use std::io::ErrorKind;
use std::path::Path;

use deftool_lang::text::count;
use deftool_process::files::untrusted_reason;
use deftool_project::{Generation, PermissionRequest, mcp_permission_request, permission_requests};

use super::line::{Line, counted, list};
use crate::cli::outcome::environment;
use crate::cli::project::trust::{
    Store, StoreError, bios_permission_requests, endpoint_permission_requests, missing_permissions,
    server_permission_requests, state_folder,
};

pub(super) fn check(generation: &Generation) -> Line {
    let mut requests = permission_requests(&generation.load, generation.tools());
    // Those of the user's tools are no requirement of the project.
    requests.retain(|request| !request.is_of_user());
    let tools = requests.len();
    let endpoints = endpoint_permission_requests(&generation.load, |name| environment(name).is_some());
    let keys = endpoints.iter().filter(|request| !request.grants.env.is_empty()).count();
    let others = endpoints.len() - keys;
    requests.extend(endpoints);
    let managed = server_permission_requests(&generation.load);
    let servers = managed.len();
    requests.extend(managed);
    requests.extend(bios_permission_requests(&generation.load));
    let load = &generation.load;
    requests.extend(load.mcp_servers.iter().map(|server| mcp_permission_request(load, server)));
    if requests.is_empty() {
        return Line::ok("trust", "not required: the project needs only read access to its own files");
    }
    let missing = PermissionRequest::lines(&missing_permissions(generation, requests));
    if missing.is_empty() {
        let many = counted(tools, "tool");
        let also = |workers: usize, what: &str| match workers {
            0 => String::new(),
            workers => format!(", and {} may {what}", count(workers, "worker")),
        };
        let (keys, servers) = (also(keys, "send a key"), also(servers, "start a server"));
        let others = also(others, "contact a remote server");
        return Line::ok(
            "trust",
            format!("granted: {many} may use more than the project's own files{keys}{others}{servers}"),
        );
    }
    let message = format!("not granted: {}", list(&missing));
    Line::warning("trust", message, "review the specs, then run `deftool trust grant`")
}

/// Checks the state folder without creating it.
pub(super) fn check_state() -> Line {
    let Some(folder) = state_folder() else {
        let message = "no state folder: neither XDG_STATE_HOME nor HOME is set, so nothing is stored";
        return Line::warning("state", message, "set HOME");
    };
    let shown = folder.display();
    let metadata = match std::fs::metadata(&folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return missing_state(&folder),
        Err(error) => {
            return Line::error("state", format!("{shown}: {error}"), "make it readable for this user");
        }
    };
    if !metadata.is_dir() {
        return Line::error(
            "state",
            format!("{shown} is not a directory"),
            "move or remove it; deftool creates the folder",
        );
    }
    if let Some(why) = untrusted_reason(&metadata) {
        let message = format!("{shown} {why}, so its contents are ignored");
        return Line::error("state", message, format!("restrict access to this user: `chmod 700 {shown}`"));
    }
    if !is_writable(&folder) {
        return Line::error("state", format!("{shown} is not writable"), format!("`chmod 700 {shown}`"));
    }
    match Store::of_user().read() {
        Ok(projects) => Line::ok("state", format!("{shown}: {} trusted", count(projects.len(), "project"))),
        Err(error @ StoreError::Damaged { .. }) => Line::warning(
            "state",
            error.to_string(),
            "run `deftool trust grant` in each project that you trust",
        ),
        Err(error) => Line::error("state", error.to_string(), "repair or remove the file"),
    }
}

/// Returns the line of a state folder that does not exist.
fn missing_state(folder: &Path) -> Line {
    let shown = folder.display();
    let parent = folder.ancestors().skip(1).find(|folder| folder.exists());
    if parent.is_some_and(is_writable) {
        return Line::ok("state", format!("{shown} does not exist yet; it is created when needed"));
    }
    let message = format!("{shown} does not exist and cannot be created, so nothing is stored");
    Line::warning("state", message, "make its parent folder writable, or set XDG_STATE_HOME")
}

/// Returns whether this user can write to a path.
#[cfg(unix)]
pub(super) fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Returns whether the read-only flag is not set.
#[cfg(not(unix))]
pub(super) fn is_writable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.permissions().readonly())
}
