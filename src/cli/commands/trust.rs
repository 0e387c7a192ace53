//! `deftool trust`: manages trusted projects.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use deftool_engine::ProjectRoots;
use deftool_lang::text::exact;
use deftool_project::{Generation, PermissionSet, find_root, mcp_permission_request, permission_requests};
use deftool_script::PathGrant;
use serde::Serialize;

use crate::cli::options::{FormatOptions, ProjectOptions};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::inputs::command_dirs;
use crate::cli::project::trust::{
    Projects, Store, StoreError, bios_permission_requests, endpoint_permission_requests,
    server_permission_requests, store_key,
};
use crate::cli::terminal::output::{eprint_error, eprint_progress, notices, print_json, print_lines};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Without a subcommand, lists the trusted projects and their permissions.

Examples:
  deftool trust
  deftool trust grant
  deftool trust grant --user-tools
  deftool trust revoke my-agent"
)]
pub(in crate::cli) struct TrustOptions {
    #[command(subcommand)]
    pub(in crate::cli) action: Option<TrustAction>,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TrustAction {
    /// Grant a project all permissions that its specs require now
    #[command(after_help = "Examples:\n  deftool trust grant\n  deftool trust grant my-agent")]
    Grant {
        /// Project folder, or a folder inside it [default: the folder of -C]
        #[arg(value_name = "DIR", conflicts_with = "directory")]
        folder: Option<PathBuf>,
        #[command(flatten)]
        project: ProjectOptions,
        /// Grant your own tools what they require to change the folder, and its project nothing
        #[arg(long)]
        user_tools: bool,
        /// Print the permissions without granting them
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Revoke all permissions of a project
    #[command(after_help = "Examples:\n  deftool trust revoke\n  deftool trust revoke --all")]
    Revoke {
        /// Project folder, or a folder inside it [default: the folder of -C]
        #[arg(value_name = "DIR", conflicts_with = "directory")]
        folder: Option<PathBuf>,
        #[command(flatten)]
        project: ProjectOptions,
        /// Revoke the permissions of all projects
        #[arg(long, conflicts_with_all = ["folder", "directory"])]
        all: bool,
    },
}

pub(in crate::cli) fn run(options: &TrustOptions) -> Result<Exit, CliError> {
    let store = Store::of_user();
    match &options.action {
        None => list(&store, options.format.is_json()),
        Some(TrustAction::Grant { folder, project, user_tools, dry_run, format }) => {
            let action = Action { user_tools: *user_tools, dry_run: *dry_run, json: format.is_json() };
            grant(&store, folder.as_deref().or(project.directory()), &action)
        }
        Some(TrustAction::Revoke { folder, project, all }) => {
            revoke(&store, folder.as_deref().or(project.directory()), *all)
        }
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
        eprint_progress("no trusted projects");
    }
    Ok(Exit::Clean)
}

/// The options of `grant`.
struct Action {
    user_tools: bool,
    dry_run: bool,
    json: bool,
}

/// Grants the permissions of a project or, with `user_tools` or outside of projects, those of the user's tools in a folder.
fn grant(store: &Store, folder: Option<&Path>, action: &Action) -> Result<Exit, CliError> {
    let dirs = command_dirs(folder)?;
    let roots = ProjectRoots::find(&dirs.project, &notices())?;
    let root = roots.trusted_folder();
    let generation = match &roots.project {
        Some(root) => Generation::load(root, &dirs.current, None)?,
        None => Generation::empty(),
    };
    // Tools that replace those of the user, and those of the user that change the current project, need trust.
    let user = roots.current();
    let generation = roots.join(generation, |root| Generation::load_of_user(root, &dirs.current, &user));
    let is_of_user = action.user_tools || roots.project.is_none();
    let mut wanted = permission_requests(&generation.load, generation.tools());
    wanted.retain(|request| request.is_of_user() == is_of_user);
    if !is_of_user {
        // Include keys that are not set: other shells may set them.
        wanted.extend(endpoint_permission_requests(&generation.load, |_| true));
        wanted.extend(server_permission_requests(&generation.load));
        wanted.extend(bios_permission_requests(&generation.load));
        let load = &generation.load;
        wanted.extend(load.mcp_servers.iter().map(|server| mcp_permission_request(load, server)));
    }
    let shown = exact(&root.to_string_lossy());
    if let (true, Err(why)) = (is_of_user, &user) {
        return Err(CliError::Usage(format!("your tools cannot work here: {why}")));
    }
    if action.json {
        let mut grants = PermissionSet::default();
        for request in &wanted {
            grants.add(request.grants.clone());
        }
        print_json(&Listed { project: &root.to_string_lossy(), grants: &grants, exists: true }, true);
    }
    if wanted.is_empty() {
        let what = if is_of_user { "your tools require" } else { "it requires" };
        eprint_progress(&format!("nothing to grant in {shown}: {what} only read access to its files"));
        return Ok(Exit::Clean);
    }
    let key = store_key(root).ok_or_else(|| {
        CliError::Usage(format!(
            "cannot store the trust: {shown} is not valid UTF-8; use `--trust` for a single run"
        ))
    })?;
    for request in wanted.iter().filter(|_| !action.json) {
        print_lines(&format!("{request}\n"));
    }
    if action.dry_run {
        return Ok(Exit::Clean);
    }
    store
        .change(&notices(), |projects| {
            // Replaces the old set, so permissions that are no longer required are revoked.
            let before = projects.remove(&key).unwrap_or_default();
            let mut granted = if is_of_user {
                PermissionSet { own: None, ..before }
            } else {
                PermissionSet { own: before.own, ..PermissionSet::default() }
            };
            for request in wanted {
                granted.add(request.grants);
            }
            projects.insert(key, granted);
        })
        .map_err(|error| refuse(&error))?;
    eprint_progress(&format!("trusted: {shown}"));
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
    store.change(&notices(), change).map_err(|error| refuse(&error))?;
    for project in &revoked {
        eprint_progress(&format!("no longer trusted: {}", exact(project)));
    }
    if revoked.is_empty() {
        let why = if all { "no project is trusted" } else { "the project is not trusted" };
        eprint_progress(&format!("nothing to revoke: {why}"));
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
    Ok(paths.into_iter().flatten().filter_map(|path| store_key(&path)).collect())
}

fn refuse(error: &StoreError) -> CliError {
    CliError::Usage(error.to_string())
}
