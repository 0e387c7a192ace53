//! `deftool trust`: which projects are trusted with what.
//!
//! Scripts run with the permissions that the project's own specs give them, so a project that wants more than to read its
//! own files is run only if the user said so once ([`ask`]). What is remembered ([`store`]) is the project's path and the set of
//! permissions: scripts may change, a permission that is not in the set is asked about again.

mod ask;
mod state;
mod store;

use std::path::Path;

use serde::Serialize;

pub(super) use crate::worker::{endpoint_wish, endpoint_wishes, server_wish, server_wishes};
pub(super) use ask::{ProjectTrust, not_remembered};
pub(super) use state::{doubt, state_folder};
pub(super) use store::{Projects, Store, StoreError};

use super::args::{TrustAction, TrustOptions};
use super::output::{print_json, print_lines, say, say_error};
use super::{CliError, Exit, locate};
use crate::project::{Generation, Grants, find_root, wishes};
use crate::script::PathGrant;
use crate::text::one_line;

pub(super) fn run(options: &TrustOptions) -> Result<Exit, CliError> {
    let store = Store::of_user();
    match &options.action {
        None => list(&store, options.json),
        Some(TrustAction::Grant { folder }) => grant(&store, folder.as_deref()),
        Some(TrustAction::Revoke { folder, all }) => revoke(&store, folder.as_deref(), *all),
    }
}

/// One trusted project, as `--json` has it.
#[derive(Serialize)]
struct Listed<'a> {
    project: &'a str,
    grants: &'a Grants,
    /// Whether the folder is still there.
    exists: bool,
}

fn list(store: &Store, json: bool) -> Result<Exit, CliError> {
    let projects = match store.read() {
        Ok(projects) => projects,
        Err(error @ (StoreError::NoFolder | StoreError::Damaged { .. } | StoreError::NotBelieved { .. })) => {
            say_error(&error.to_string());
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
        print_lines(&format!("{}{gone}\n  {grants}\n", one_line((*project).to_owned())));
    }
    if listed.is_empty() {
        say("no project is trusted with more than its own files");
    }
    Ok(Exit::Clean)
}

fn grant(store: &Store, folder: Option<&Path>) -> Result<Exit, CliError> {
    let place = locate(folder)?;
    let root = find_root(&place.folder)?;
    let generation = Generation::load(&root, &place.current, None)?;
    let mut wanted = wishes(&generation.load, generation.tools());
    // Set or not: the shell that runs it may be another.
    wanted.extend(endpoint_wishes(&generation.load, |_| true));
    wanted.extend(server_wishes(&generation.load));
    let shown = one_line(root.to_string_lossy().into_owned());
    if wanted.is_empty() {
        say(&format!("nothing to grant: {shown} wants no more than to read its own files"));
        return Ok(Exit::Clean);
    }
    let key = ask::key_of(&root).ok_or_else(|| {
        CliError::Usage(format!("{shown} is no text, so it cannot be remembered; `--trust` allows one run"))
    })?;
    for wish in &wanted {
        print_lines(&format!("{wish}\n"));
    }
    store
        .change(|projects| {
            // What is no longer wanted is trusted no longer.
            let mut granted = Grants::default();
            for wish in wanted {
                granted.add(wish.grants);
            }
            projects.insert(key, granted);
        })
        .map_err(|error| refuse(&error))?;
    say(&format!("trusted: {shown}"));
    Ok(Exit::Clean)
}

fn revoke(store: &Store, folder: Option<&Path>, all: bool) -> Result<Exit, CliError> {
    let keys = if all { None } else { Some(keys_of(folder)?) };
    let mut revoked = Vec::new();
    let change = |projects: &mut Projects| match &keys {
        None => revoked = std::mem::take(projects).into_keys().collect(),
        Some(keys) => {
            revoked.extend(keys.iter().find(|key| projects.remove(*key).is_some()).cloned());
        }
    };
    store.change(change).map_err(|error| refuse(&error))?;
    for project in revoked.iter().cloned() {
        say(&format!("no longer trusted: {}", one_line(project)));
    }
    if revoked.is_empty() {
        say("nothing to revoke: it was not trusted");
    }
    Ok(Exit::Clean)
}

/// The names that a folder's project may have in the store: the folder itself, which may be gone, and, if it is not, the
/// project that it lies in.
fn keys_of(folder: Option<&Path>) -> Result<Vec<String>, CliError> {
    let current = locate(None)?.current;
    let named = folder.map_or_else(|| current.clone(), |folder| current.join(folder));
    let project = if named.exists() { find_root(&named).ok() } else { None };
    // Without `..`, which leads nowhere from a folder that is gone.
    let paths = [Some(PathGrant::new("", named).path), project];
    Ok(paths.into_iter().flatten().filter_map(|path| ask::key_of(&path)).collect())
}

fn refuse(error: &StoreError) -> CliError {
    CliError::Usage(error.to_string())
}
