//! Folders of the user at the beginning of paths: `~`, and variables of the XDG Base Directory Specification.
//!
//! Only the syntax is here, so that checks give the same result on every machine.

use super::nearest;

/// A folder of the user that a path in a spec or script may begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeFolder {
    /// `~`: the home folder.
    Home,
    /// `$XDG_CONFIG_HOME`.
    Config,
    /// `$XDG_DATA_HOME`.
    Data,
    /// `$XDG_STATE_HOME`.
    State,
    /// `$XDG_CACHE_HOME`.
    Cache,
}

impl HomeFolder {
    /// All folders.
    pub const ALL: [Self; 5] = [Self::Home, Self::Config, Self::Data, Self::State, Self::Cache];

    /// Returns the folder as written in a path.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Home => "~",
            Self::Config => "$XDG_CONFIG_HOME",
            Self::Data => "$XDG_DATA_HOME",
            Self::State => "$XDG_STATE_HOME",
            Self::Cache => "$XDG_CACHE_HOME",
        }
    }

    /// Returns the variable with the absolute path of the folder; `None` for the home folder, whose variable depends on
    /// the system.
    pub fn variable(self) -> Option<&'static str> {
        self.as_str().strip_prefix('$')
    }

    /// Returns the path in the home folder that applies if the variable is not set.
    pub fn default_in_home(self) -> &'static str {
        match self {
            Self::Home => "",
            Self::Config => ".config",
            Self::Data => ".local/share",
            Self::State => ".local/state",
            Self::Cache => ".cache",
        }
    }

    /// Returns the folder that `path` begins with and the rest of the path, which is relative. Returns `None` if the path
    /// is absolute or relative to the project.
    ///
    /// # Errors
    /// If the path begins with another `~` or `$`.
    pub fn split(path: &str) -> Result<Option<(Self, &str)>, UnknownHomeFolder<'_>> {
        if !path.starts_with(['~', '$']) {
            return Ok(None);
        }
        let (written, rest) = path.split_once('/').unwrap_or((path, ""));
        match Self::ALL.into_iter().find(|folder| folder.as_str() == written) {
            // A second slash would make the rest absolute.
            Some(folder) => Ok(Some((folder, rest.trim_start_matches('/')))),
            None => Err(UnknownHomeFolder { written, rest }),
        }
    }
}

/// A beginning of a path that is not a known folder, such as `$PROJECTS` or `~user`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownHomeFolder<'p> {
    /// The first component of the path.
    written: &'p str,
    /// The path after it.
    rest: &'p str,
}

impl UnknownHomeFolder<'_> {
    /// Returns the path that was probably meant.
    pub fn meant(&self) -> Option<String> {
        let name = self.written.strip_prefix('$')?.trim_matches(['{', '}']);
        let folder = match name {
            "HOME" | "USERPROFILE" => String::from("~"),
            _ => format!("${}", nearest(name, HomeFolder::ALL.into_iter().filter_map(HomeFolder::variable))?),
        };
        Some(if self.rest.is_empty() { folder } else { format!("{folder}/{}", self.rest) })
    }

    /// Returns what to write instead.
    pub fn help(&self) -> String {
        let Self { written, .. } = self;
        match self.meant() {
            Some(path) => format!("write `{path}`"),
            None => format!(
                "a path may begin with {}; write `./{written}` for a name in the project",
                HomeFolder::ALL.map(|folder| format!("`{}`", folder.as_str())).join(", ")
            ),
        }
    }
}

impl std::fmt::Display for UnknownHomeFolder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { written, .. } = self;
        if written.starts_with('~') {
            write!(f, "`{written}` is not supported: only your own home folder, `~`, can be named")
        } else {
            write!(f, "unknown variable `{written}` at the beginning of a path")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_beginnings_are_split() {
        for path in ["", "a", "./~", "./$HOME", "a/~", "a~", "/~", "..", "a/$HOME"] {
            assert_eq!(HomeFolder::split(path), Ok(None), "{path}");
        }
        for (path, folder, rest) in [
            ("~", HomeFolder::Home, ""),
            ("~/", HomeFolder::Home, ""),
            ("~//etc", HomeFolder::Home, "etc"),
            ("~/a/~/$X", HomeFolder::Home, "a/~/$X"),
            ("$XDG_CONFIG_HOME", HomeFolder::Config, ""),
            ("$XDG_CACHE_HOME/a", HomeFolder::Cache, "a"),
        ] {
            assert_eq!(HomeFolder::split(path), Ok(Some((folder, rest))), "{path}");
        }
        for (path, meant) in [
            ("~user/a", None),
            ("~~", None),
            ("$", None),
            ("$PROJECTS/a", None),
            ("$XDG_RUNTIME_DIR/a", None),
            ("$HOME", Some("~")),
            ("${HOME}/a", Some("~/a")),
            ("${XDG_DATA_HOME}/a", Some("$XDG_DATA_HOME/a")),
            ("$XDG_CONFIG_HOM/a", Some("$XDG_CONFIG_HOME/a")),
            ("$xdg_state_home", Some("$XDG_STATE_HOME")),
        ] {
            let unknown = HomeFolder::split(path).unwrap_err();
            assert_eq!(unknown.meant().as_deref(), meant, "{path}");
        }
    }
}
