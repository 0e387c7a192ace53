//! Resolves the program, working directory and environment variables of a run, within the grants of the spec.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use deftool_lang::syntax::quoted;
use deftool_lang::tool::ToolErrorKind;

use crate::error::{HostError, clean};
use crate::path::resolve_path;
use crate::permission::{PathGrant, normalize};
use crate::script::Script;

/// The variables about the user, without secrets, that MCP servers expect. Both official SDKs pass them and `PATH`.
const USER_VARIABLES: [&str; 5] = ["HOME", "LOGNAME", "SHELL", "TERM", "USER"];

/// The grants of a spec that apply to programs.
pub(super) struct ProgramGrants {
    run: Vec<String>,
    env: Vec<String>,
    folders: Vec<PathGrant>,
    root: PathBuf,
}

impl ProgramGrants {
    pub(super) fn new(script: &Script) -> Self {
        let allowed = &script.permissions;
        Self {
            run: allowed.run.clone(),
            env: allowed.env.clone(),
            folders: allowed.read.iter().chain(&allowed.write).cloned().collect(),
            root: script.root.clone().unwrap_or_else(|| PathBuf::from(".")),
        }
    }

    /// The grants of a program that no script runs. It also gets [`USER_VARIABLES`].
    pub(super) fn unrestricted(env: Vec<String>, folder: &Path) -> Self {
        let env = USER_VARIABLES.map(String::from).into_iter().chain(env).collect();
        Self { run: Vec::new(), env, folders: Vec::new(), root: folder.to_owned() }
    }

    /// Returns an error unless the spec grants the program by this exact name.
    pub(super) fn check_program(&self, name: &str) -> Result<(), HostError> {
        check_grant(name, &self.run, ("run programs", "run"), "run")
    }

    /// Returns an error unless the spec grants the variable by this exact name.
    pub(super) fn check_variable(&self, name: &str) -> Result<(), HostError> {
        check_grant(name, &self.env, ("set variables of programs", "set the variables"), "env")
    }

    /// Returns the file of the granted program `name`. A bare name is looked up in this process's `PATH`, but never in
    /// the current directory; a path is relative to the project, absolute, or in a folder of the user.
    pub(super) fn find(&self, name: &str) -> Result<PathBuf, HostError> {
        if name.contains(std::path::is_separator) {
            let path = resolve_path(&self.root, name).map_err(script_error)?;
            return match std::fs::metadata(&path) {
                Ok(metadata) if is_program(&metadata) => Ok(path),
                Ok(_) => Err(script_error(format!("{} is not executable", clean(name, 200)))),
                Err(_) => Err(script_error(format!("program {} not found", clean(name, 200)))),
            };
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|file| std::fs::metadata(file).is_ok_and(|metadata| is_program(&metadata)))
            .ok_or_else(|| script_error(format!("program {} not found in PATH", clean(name, 200))))
    }

    /// Returns the working directory of the program.
    pub(super) fn folder(&self, requested: Option<&str>) -> Result<PathBuf, HostError> {
        let Some(requested) = requested else { return Ok(self.root.clone()) };
        let shown = clean(requested, 200);
        let path = resolve_path(&self.root, requested);
        let path = normalize(&path.map_err(|why| script_error(format!("cwd {shown}: {why}")))?);
        let real = std::fs::canonicalize(&path).map_err(|error| {
            script_error(format!(
                "cwd {shown}: {}",
                error.to_string().split(" (os error").next().unwrap_or_default()
            ))
        })?;
        let is_beneath =
            |folder: &Path| std::fs::canonicalize(folder).is_ok_and(|folder| real.starts_with(folder));
        if !is_beneath(&self.root) && !self.folders.iter().any(|grant| is_beneath(&grant.path)) {
            return Err(HostError {
                kind: ToolErrorKind::Permission,
                message: format!(
                    "cwd {shown} is not allowed: it is outside of the project and of all granted folders; to allow it, add \
                     :allow (:read [{}]) to the spec",
                    quoted(&shown)
                ),
            });
        }
        if real.is_dir() { Ok(real) } else { Err(script_error(format!("cwd {shown} is not a folder"))) }
    }

    /// Returns the variables that every program gets: `PATH`, `LANG` and those that the spec lists.
    pub(super) fn variables(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").map(|path| (OsString::from("PATH"), path));
        let granted = self.env.iter().filter(|name| is_variable(name));
        let granted = granted.filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let language = (OsString::from("LANG"), OsString::from("C.UTF-8"));
        path.into_iter().chain([language]).chain(granted).collect()
    }
}

/// Returns an error unless `granted` contains `name`. `verbs`: what the tool may not do if nothing is granted, and what
/// it may only do otherwise. `key`: the permission in a spec.
fn check_grant(name: &str, granted: &[String], verbs: (&str, &str), key: &str) -> Result<(), HostError> {
    if granted.iter().any(|granted| granted == name) {
        return Ok(());
    }
    let shown = clean(name, 200);
    let allowed = if granted.is_empty() {
        format!("this tool may not {}", verbs.0)
    } else {
        let names: Vec<String> = granted.iter().map(|name| quoted(&clean(name, 200))).collect();
        format!("this tool may only {} {}", verbs.1, names.join(" "))
    };
    Err(HostError {
        kind: ToolErrorKind::Permission,
        message: format!(
            "{shown} is not allowed: {allowed}; to allow it, add :allow (:{key} [{}]) to the spec",
            quoted(&shown)
        ),
    })
}

/// Returns whether `name` is valid as the name of an environment variable.
pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn is_program(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

fn script_error(message: String) -> HostError {
    HostError { kind: ToolErrorKind::Script, message }
}
