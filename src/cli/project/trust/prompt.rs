//! Trust of a project for one command: stored permissions, `--trust`, or a confirmation prompt.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::Path;

use deftool_engine::{ProjectTrust, Store, StoreError, command_of, store_key, stored_trust, untrusted};
use deftool_lang::text::{count, exact};
use deftool_project::{Generation, PermissionRequest, PermissionSet};

use crate::cli::outcome::CliError;
use crate::cli::terminal::input::flush_input;
use crate::cli::terminal::output::{clean, eprint_error, eprint_line, notices, paint};

/// Determines the trust for a command that may run scripts with the permissions `wanted`, of the project at `root`.
/// Uses `--trust` (`trusts_all`), the stored permissions, or a prompt if there is a terminal.
///
/// # Errors
/// If a required permission is not trusted.
pub(in crate::cli) fn resolve(
    root: &Path,
    wanted: Vec<PermissionRequest>,
    trusts_all: bool,
) -> Result<ProjectTrust, CliError> {
    resolve_partly(root, wanted, trusts_all, |_| false)
}

/// Like [`resolve`], but a command for which the trusted permissions `suffice` continues with them.
///
/// # Errors
/// If a required permission is not trusted, and the trusted ones do not suffice.
pub(in crate::cli) fn resolve_partly(
    root: &Path,
    wanted: Vec<PermissionRequest>,
    trusts_all: bool,
    suffice: impl Fn(&PermissionSet) -> bool,
) -> Result<ProjectTrust, CliError> {
    let mut grants = PermissionSet::default();
    if trusts_all {
        // Grant only what the specs require now: a reload during the run, for example after an edit by the model,
        // does not add permissions.
        for request in wanted {
            grants.add(request.grants);
        }
    } else if !wanted.is_empty() {
        let store = Store::of_user();
        grants = stored_permissions(&store, root);
        let missing = grants.missing_requests(wanted);
        if !missing.is_empty() {
            match prompt(root, &missing) {
                Ok(given) => {
                    store_permissions(&store, root, &given);
                    grants.add(given);
                }
                Err(_) if suffice(&grants) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(ProjectTrust::with(root, grants))
}

/// Returns the parts of `wanted` that are not stored for the project of `generation`.
pub(in crate::cli) fn missing_permissions(
    generation: &Generation,
    wanted: Vec<PermissionRequest>,
) -> Vec<PermissionRequest> {
    if wanted.is_empty() {
        return wanted;
    }
    let trusted = generation.load.root.as_deref().map(stored_trust);
    trusted.unwrap_or_default().missing_requests(wanted)
}

/// Reports on one line the tools that are not available, and the permissions that they lack.
pub(in crate::cli) fn report_untrusted(missing: &[PermissionRequest]) {
    if !missing.is_empty() {
        eprint_line(&untrusted(missing));
    }
}

fn stored_permissions(store: &Store, root: &Path) -> PermissionSet {
    match store.read() {
        Ok(projects) => store_key(root).and_then(|key| projects.get(&key).cloned()).unwrap_or_default(),
        // This error is reported when permissions are stored.
        Err(StoreError::NoFolder) => PermissionSet::default(),
        Err(error) => {
            eprint_error(&error.to_string());
            PermissionSet::default()
        }
    }
}

/// Stores granted permissions. An error is only reported as a note, because the answer applies to this run anyway.
fn store_permissions(store: &Store, root: &Path, given: &PermissionSet) {
    let Some(key) = store_key(root) else {
        return eprint_line("note: cannot store the trust: the project's path is not valid UTF-8");
    };
    let changed = store.change(&notices(), |projects| projects.entry(key).or_default().add(given.clone()));
    if let Err(error) = changed {
        eprint_line(&format!("note: cannot store the trust: {}", clean(&error.to_string())));
    }
}

/// Prompts on the terminal and returns the granted permissions.
fn prompt(root: &Path, missing: &[PermissionRequest]) -> Result<PermissionSet, CliError> {
    let is_of_user = missing.iter().all(PermissionRequest::is_of_user);
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        let who = if is_of_user { "your own tools require" } else { "this project requires" };
        return Err(CliError::Usage(format!(
            "{who} permissions that are not trusted: {}; review the specs, then run `{}`, or use `--trust` for this run only",
            PermissionRequest::lines(missing).join("; "),
            command_of(missing)
        )));
    }
    let folder = exact(&root.to_string_lossy());
    eprint_line(&if is_of_user {
        format!("Your own tools require more than read access to {folder}:")
    } else {
        format!("The project {folder} requires more than read access to its own files:")
    });
    for line in PermissionRequest::lines(missing) {
        eprint_line(&format!("  {line}"));
    }
    let mut given = PermissionSet::default();
    for request in missing {
        given.add(request.grants.clone());
    }
    // After the list, so that the total is visible even if the list scrolls off the screen.
    eprint_line(&format!("Total: {}.", count(given.len(), "permission")));
    let mut err = std::io::stderr().lock();
    let question = if is_of_user {
        "Allow your tools this in this folder permanently?"
    } else {
        "Trust the project permanently with these permissions?"
    };
    let prompt_text = paint(question, anstyle::AnsiColor::Yellow);
    flush_input(std::io::stdin());
    let _ = write!(anstream::AutoStream::auto(&mut err), "{prompt_text} [y/N] ");
    let _ = err.flush();
    drop(err);
    let mut answer = String::new();
    let read = std::io::stdin().lock().take(1024).read_line(&mut answer);
    if read.is_err() || !answer.ends_with('\n') {
        // End the line of the prompt.
        eprint_line("");
    }
    if !matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Err(CliError::Usage(String::from(
            "not trusted, so nothing was run; use `--trust` to allow a single run",
        )));
    }
    Ok(given)
}
