//! The tools of the user's own project, beside those of another project.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use super::{Generation, name_of};
use crate::model::{Load, LoadedTool, ToolOrigin};

impl Generation {
    /// Creates a generation without tools, for a command outside of projects.
    pub fn empty() -> Self {
        Self::first(Load::default(), Instant::now())
    }

    /// Adds the tools of the user's own project. A tool of this project keeps its name: if a tool of the user has the
    /// same, this needs trust, and the tool of the user is left out.
    #[must_use]
    pub fn beside(&self, user: Arc<Self>) -> Self {
        // The name of a broken tool is taken, too: a call must not run a different tool.
        let taken: HashSet<&str> =
            self.load.tools.iter().chain(&self.tools).map(|loaded| name_of(loaded)).collect();
        let is_of_user = |name: &str| user.tool(name).is_some() || user.defines(name);
        let own = self.tools.iter().map(|loaded| {
            if is_of_user(name_of(loaded)) {
                loaded.with_origin(ToolOrigin::Replacement)
            } else {
                Arc::clone(loaded)
            }
        });
        let added = user.tools.iter().filter(|loaded| !taken.contains(name_of(loaded)));
        let mut tools: Vec<_> = own.chain(added.map(|loaded| loaded.with_origin(ToolOrigin::User))).collect();
        tools.sort_by(|one, other| name_of(one).cmp(name_of(other)));
        Self {
            // Each of the two numbers only increases.
            number: self.number + user.number - 1,
            load: self.load.clone(),
            took: self.took + user.took,
            changes: self.changes.clone(),
            tools,
            has_kept: self.has_kept,
            user: Some(user),
        }
    }

    /// Returns the generation of the user's own project, if its tools are offered, too.
    pub fn user(&self) -> Option<&Arc<Self>> {
        self.user.as_ref()
    }

    /// Returns the load that a tool of this generation was created from.
    pub fn load_of(&self, loaded: &LoadedTool) -> &Load {
        match self.user() {
            Some(user) if loaded.origin == ToolOrigin::User => &user.load,
            Some(_) | None => &self.load,
        }
    }

    /// Returns whether the specs have a tool called `name`, which may be broken.
    pub(super) fn defines(&self, name: &str) -> bool {
        self.load.tools.iter().any(|loaded| name_of(loaded) == name)
    }
}
