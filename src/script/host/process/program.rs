//! Which program is meant, where it runs and with which variables: what is granted, and nothing else.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::script::Script;
use crate::script::error::{HostError, clean};
use crate::script::permission::{PathGrant, plain};
use crate::syntax::quoted;
use crate::tool::ToolErrorKind;

/// Variables that name code for a program to load or to run, or where it looks for other programs. A script sets them only
/// if the spec lists them.
const LOADERS: [&str; 43] = [
    "PATH",
    "BASH_ENV",
    "ENV",
    "IFS",
    "SHELLOPTS",
    "BASHOPTS",
    "PROMPT_COMMAND",
    "PS4",
    "ZDOTDIR",
    "BROWSER",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "SSH_ASKPASS",
    "GCONV_PATH",
    "LOCPATH",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PERL5LIB",
    "PERL5OPT",
    "PERL5DB",
    "PERLLIB",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONBREAKPOINT",
    "PYTHONWARNINGS",
    "PYTHONPYCACHEPREFIX",
    "RUBYLIB",
    "RUBYOPT",
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "PHPRC",
    "RUSTC",
    "RUSTC_WRAPPER",
    "MAKEFLAGS",
];
/// What such variables begin with, where there are too many of them.
const LOADING: [&str; 6] = ["LD_", "DYLD_", "BASH_FUNC_", "GIT_", "LUA_", "NODE_"];

/// What the spec grants of programs.
pub(super) struct Grants {
    run: Vec<String>,
    env: Vec<String>,
    folders: Vec<PathGrant>,
    root: PathBuf,
}

impl Grants {
    pub(super) fn new(script: &Script) -> Self {
        let allowed = &script.permissions;
        Self {
            run: allowed.run.clone(),
            env: allowed.env.clone(),
            folders: allowed.read.iter().chain(&allowed.write).cloned().collect(),
            root: script.root.clone().unwrap_or_else(|| PathBuf::from(".")),
        }
    }

    /// Refuses a program that is not granted, by the name that the spec uses for it.
    pub(super) fn check_program(&self, name: &str) -> Result<(), HostError> {
        if self.run.iter().any(|granted| granted == name) {
            return Ok(());
        }
        let shown = clean(name, 200);
        let allowed = if self.run.is_empty() {
            String::from("this tool may run no program")
        } else {
            let names: Vec<String> = self.run.iter().map(|name| quoted(&clean(name, 200))).collect();
            format!("this tool may run {} only", names.join(" "))
        };
        Err(HostError {
            kind: ToolErrorKind::Permission,
            message: format!(
                "{shown} is not allowed: {allowed}; to allow it, add :allow (:run [{}]) to the spec",
                quoted(&shown)
            ),
        })
    }

    /// Refuses a variable that changes which code runs, unless the spec lists it.
    pub(super) fn check_variable(&self, name: &str) -> Result<(), HostError> {
        let is_loader = LOADERS.contains(&name) || LOADING.iter().any(|begin| name.starts_with(begin));
        if !is_loader || self.env.iter().any(|granted| granted == name) {
            return Ok(());
        }
        let shown = clean(name, 100);
        Err(HostError {
            kind: ToolErrorKind::Permission,
            message: format!(
                "{shown} is not allowed: it changes which code a program runs; to allow it, add :allow (:env [{}]) to \
                 the spec",
                quoted(&shown)
            ),
        })
    }

    /// The file of the granted program `name`. A bare name is looked up in the engine's `PATH`, but never in the current
    /// folder; any other is relative to the project.
    pub(super) fn find(&self, name: &str) -> Result<PathBuf, HostError> {
        if name.contains(std::path::is_separator) {
            let path = self.root.join(name);
            return match std::fs::metadata(&path) {
                Ok(about) if is_program(&about) => Ok(path),
                Ok(_) => Err(wrong(format!("{} is no program: it cannot be executed", clean(name, 200)))),
                Err(_) => Err(wrong(format!("there is no program {}", clean(name, 200)))),
            };
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|file| std::fs::metadata(file).is_ok_and(|about| is_program(&about)))
            .ok_or_else(|| wrong(format!("there is no program {} in PATH", clean(name, 200))))
    }

    /// The folder that the program runs in.
    pub(super) fn folder(&self, wanted: Option<&str>) -> Result<PathBuf, HostError> {
        let Some(wanted) = wanted else { return Ok(self.root.clone()) };
        let shown = clean(wanted, 200);
        let path = plain(&self.root.join(wanted));
        let real = std::fs::canonicalize(&path).map_err(|error| {
            wrong(format!(
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
                    "cwd {shown} is not allowed: it is neither in the project nor beneath a granted folder; to allow \
                     it, add :allow (:read [{}]) to the spec",
                    quoted(&shown)
                ),
            });
        }
        if real.is_dir() { Ok(real) } else { Err(wrong(format!("cwd {shown} is no folder"))) }
    }

    /// The variables that every program gets: where programs are, a language, and those that the spec lists.
    pub(super) fn variables(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").map(|path| (OsString::from("PATH"), path));
        let granted = self.env.iter().filter(|name| is_variable(name));
        let granted = granted.filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let language = (OsString::from("LANG"), OsString::from("C.UTF-8"));
        path.into_iter().chain([language]).chain(granted).collect()
    }
}

/// Whether an environment can hold `name`.
pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn is_program(about: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    about.is_file() && about.permissions().mode() & 0o111 != 0
}

fn wrong(message: String) -> HostError {
    HostError { kind: ToolErrorKind::Script, message }
}
