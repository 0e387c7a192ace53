//! What a script may use: `:allow (:net […] :read […] :write […] :run […] :env […])`.

/// Grants of one tool, as they were written. Nothing is allowed that is not listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permissions {
    /// Hosts that `http` may reach.
    pub net: Vec<String>,
    /// Roots that `fs` may read beneath, relative to the project or absolute.
    pub read: Vec<String>,
    /// Roots that `fs` may change beneath.
    pub write: Vec<String>,
    /// Programs that `process.run` may start.
    pub run: Vec<String>,
    /// Environment variables that `env.get` may read.
    pub env: Vec<String>,
}

impl Permissions {
    /// The list that a key of `:allow` fills.
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
