//! Whether the managed server of a worker can be started. It is not started.

use std::path::Path;

use deftool_lang::spec::{ServerSpec, WorkerSpec};
use deftool_project::Generation;
use deftool_script::resolve_path;
use deftool_worker::{is_port_free, port_holder};

use super::line::Line;
use crate::cli::project::programs::find_program;
use crate::cli::project::trust::{missing_permissions, server_permission_request};

pub(super) fn check(worker: &WorkerSpec, server: &ServerSpec, generation: &Generation) -> Line {
    let name = &worker.name.value;
    let root = generation.load.root.as_deref().unwrap_or(Path::new("."));
    let folder = server.cwd.as_deref().map_or_else(|| Ok(root.to_owned()), |cwd| resolve_path(root, cwd));
    let folder = match folder {
        Ok(folder) => folder,
        Err(why) => return Line::error("server", why, "correct the server's :cwd"),
    };
    if !folder.is_dir() {
        let message = format!(
            "working directory `{}` of the server of worker `{name}` does not exist",
            folder.display()
        );
        return Line::error("server", message, "correct the server's :cwd");
    }
    let program = server.command.first().map(String::as_str).unwrap_or_default();
    let Some(found) = find_program(program, &folder) else {
        let location =
            if is_path(program) { format!(" in {}", folder.display()) } else { String::from(" in PATH") };
        let message = format!("program `{program}` of worker `{name}` not found{location}");
        let advice = if program.trim().contains(char::is_whitespace) {
            "split the server's :command into one string per argument"
        } else {
            "install it, or correct the server's :command"
        };
        return Line::error("server", message, advice);
    };
    if let Some(port) = server.port.filter(|port| !is_port_free(*port)) {
        let holder = port_holder(port).map(|holder| format!(" by {holder}")).unwrap_or_default();
        let message =
            format!("port {port} is already in use{holder}, so worker `{name}` cannot start its server");
        return Line::error("server", message, "stop that process, or use `{port}` instead of :port");
    }
    let shown = found.display();
    let is_trusted = server_permission_request(&generation.load, worker, None)
        .is_none_or(|request| missing_permissions(generation, vec![request]).is_empty());
    // The trust line reports the missing permissions.
    let condition = if is_trusted { "" } else { ", after permission is granted" };
    Line::ok("server", format!("{shown} is started by each run of worker `{name}`{condition}"))
}

/// Returns whether `program` is a path and not searched in PATH.
fn is_path(program: &str) -> bool {
    program.contains(std::path::is_separator)
}
