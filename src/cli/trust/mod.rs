//! `deftool trust`: manages trusted projects.
//!
//! Scripts have the permissions in the project's own specs. A project that requires more than read access to its own
//! files must be trusted once ([`prompt`]). The store ([`store`]) maps project paths to permissions. Scripts may change
//! later, but a new permission requires a new confirmation.

mod prompt;
mod state;
mod store;

use std::path::Path;

use deftool_lang::text::exact;
use deftool_project::{Generation, PermissionSet, find_root, mcp_permission_request, permission_requests};
use deftool_script::PathGrant;
use serde::Serialize;

pub(super) use deftool_worker::{
    endpoint_permission_request, endpoint_permission_requests, server_permission_request,
    server_permission_requests,
};
pub(super) use prompt::{ProjectTrust, missing_permissions, stored_trust};
pub(super) use state::state_folder;
pub(super) use store::{Projects, Store, StoreError};

use super::args::{TrustAction, TrustOptions};
use super::command::{CliError, Exit, command_dirs};
use super::output::{eprint_error, eprint_line, print_json, print_lines};

pub(super) fn run(options: &TrustOptions) -> Result<Exit, CliError> {
    let store = Store::of_user();
    match &options.action {
        None => list(&store, options.json),
        Some(TrustAction::Grant { folder, dry_run }) => grant(&store, folder.as_deref(), *dry_run),
        Some(TrustAction::Revoke { folder, all }) => revoke(&store, folder.as_deref(), *all),
    }
}

/// A trusted project in the output of `--json`.
#[derive(Serialize)]
struct Listed<'a> {
    project: &'a str,
    grants: &'a PermissionSet,
    /// Whether the folder exists.
    exists: bool,
}

fn list(store: &Store, json: bool) -> Result<Exit, CliError> {
    let projects = match store.read() {
        Ok(projects) => projects,
        Err(error @ (StoreError::NoFolder | StoreError::Damaged { .. } | StoreError::Untrusted { .. })) => {
            eprint_error(&error.to_string());
            Projects::new()
        }
        Err(error @ (StoreError::Newer { .. } | StoreError::Io { .. })) => return Err(refuse(&error)),
    };
    let listed: Vec<Listed<'_>> = projects
        .iter()
        .map(|(project, grants)| Listed { project, grants, exists: Path::new(project).is_dir() })
        .collect();
    if json {
        print_json(&listed, true);
        return Ok(Exit::Clean);
    }
    for Listed { project, grants, exists } in &listed {
        let gone = if *exists { "" } else { " (gone)" };
        print_lines(&format!("{}{gone}\n  {grants}\n", exact(project)));
    }
    if listed.is_empty() {
        eprint_line("no trusted projects");
    }
    Ok(Exit::Clean)
}

fn grant(store: &Store, folder: Option<&Path>, dry_run: bool) -> Result<Exit, CliError> {
    let dirs = command_dirs(folder)?;
    let root = find_root(&dirs.project)?;
    let generation = Generation::load(&root, &dirs.current, None)?;
    let mut wanted = permission_requests(&generation.load, generation.tools());
    // Include keys that are not set: other shells may set them.
    wanted.extend(endpoint_permission_requests(&generation.load, |_| true));
    wanted.extend(server_permission_requests(&generation.load));
    let load = &generation.load;
    wanted.extend(load.mcp_servers.iter().map(|server| mcp_permission_request(load, server)));
    let shown = exact(&root.to_string_lossy());
    if wanted.is_empty() {
        eprint_line(&format!("nothing to grant: {shown} requires only read access to its own files"));
        return Ok(Exit::Clean);
    }
    let key = prompt::store_key(&root).ok_or_else(|| {
        CliError::Usage(format!(
            "cannot store the trust: {shown} is not valid UTF-8; use `--trust` for a single run"
        ))
    })?;
    for request in &wanted {
        print_lines(&format!("{request}\n"));
    }
    if dry_run {
        return Ok(Exit::Clean);
    }
    store
        .change(|projects| {
            // Replaces the old set, so permissions that are no longer required are revoked.
            let mut granted = PermissionSet::default();
            for request in wanted {
                granted.add(request.grants);
            }
            projects.insert(key, granted);
        })
        .map_err(|error| refuse(&error))?;
    eprint_line(&format!("trusted: {shown}"));
    Ok(Exit::Clean)
}

fn revoke(store: &Store, folder: Option<&Path>, all: bool) -> Result<Exit, CliError> {
    let keys = if all { None } else { Some(store_keys(folder)?) };
    let mut revoked = Vec::new();
    let change = |projects: &mut Projects| match &keys {
        None => revoked = std::mem::take(projects).into_keys().collect(),
        Some(keys) => {
            revoked.extend(keys.iter().find(|key| projects.remove(*key).is_some()).cloned());
        }
    };
    store.change(change).map_err(|error| refuse(&error))?;
    for project in &revoked {
        eprint_line(&format!("no longer trusted: {}", exact(project)));
    }
    if revoked.is_empty() {
        eprint_line("nothing to revoke: the project is not trusted");
    }
    Ok(Exit::Clean)
}

/// Returns the possible store keys for a folder: the folder itself, even if it does not exist, and the project that
/// contains it.
fn store_keys(folder: Option<&Path>) -> Result<Vec<String>, CliError> {
    let current = command_dirs(None)?.current;
    let named = folder.map_or_else(|| current.clone(), |folder| current.join(folder));
    let project = if named.exists() { find_root(&named).ok() } else { None };
    // Normalized, because `..` cannot be resolved in a folder that does not exist.
    let paths = [Some(PathGrant::new("", named).path), project];
    Ok(paths.into_iter().flatten().filter_map(|path| prompt::store_key(&path)).collect())
}

fn refuse(error: &StoreError) -> CliError {
    CliError::Usage(error.to_string())
}
