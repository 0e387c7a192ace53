//! The permissions of a script: `:allow (:net […] :read […] :write […] :run […] :env […])`.

/// The permissions of one tool, as written. Everything that is not listed is denied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permissions {
    /// Hosts that `http` may access.
    pub net: Vec<String>,
    /// Directories that `fs` may read in, relative to the project or absolute.
    pub read: Vec<String>,
    /// Directories that `fs` may write in.
    pub write: Vec<String>,
    /// Programs that `process.run` may start.
    pub run: Vec<String>,
    /// Environment variables that `env.get` may read.
    pub env: Vec<String>,
}

impl Permissions {
    /// Returns the list for a key of `:allow`.
    pub(super) fn list_mut(&mut self, key: &str) -> Option<&mut Vec<String>> {
        match key {
            "net" => Some(&mut self.net),
            "read" => Some(&mut self.read),
            "write" => Some(&mut self.write),
            "run" => Some(&mut self.run),
            "env" => Some(&mut self.env),
            _ => None,
        }
    }
}
