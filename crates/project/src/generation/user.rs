//! The tools of the user's own project, beside those of another project.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use deftool_lang::spec::{PathBase, Tool, ToolKind};
use deftool_script::Script;

use super::{Generation, name_of};
use crate::model::{Load, LoadedTool, ScriptState, ToolOrigin};

impl Generation {
    /// Creates a generation without tools, for a command outside of projects.
    pub fn empty() -> Self {
        Self::first(Load::default(), Instant::now())
    }

    /// Adds the tools of the user's own project. A tool of this project keeps its name: if a tool of the user has the
    /// same, the tool of the user is left out. This needs trust, unless both are the same tool.
    #[must_use]
    pub fn beside(&self, user: Arc<Self>) -> Self {
        // The name of a broken tool is taken, too: a call must not run a different tool.
        let taken: HashSet<&str> =
            self.load.tools.iter().chain(&self.tools).map(|loaded| name_of(loaded)).collect();
        let is_of_user = |name: &str| user.tool(name).is_some() || user.defines(name);
        let own = self.tools.iter().map(|loaded| {
            if is_of_user(name_of(loaded)) && !self.is_tool_of(&user, loaded) {
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

    /// Returns whether a tool of this project is one of the user, to the byte, and works in the current project in both:
    /// a bundled tool that both projects have.
    fn is_tool_of(&self, user: &Self, loaded: &LoadedTool) -> bool {
        let spec = |load: &Load, tool: &Tool| {
            load.sources.get(tool.source).map(|file| tool.span.of(&file.text).to_owned())
        };
        let Some(other) = user.tool(name_of(loaded)) else { return false };
        let is_same_script = match (&loaded.script, &other.script) {
            (ScriptState::Ready(one), ScriptState::Ready(other)) => has_same_sources(one, other),
            (ScriptState::None, ScriptState::None) => true,
            _ => false,
        };
        let is_based = loaded.tool.base == PathBase::Project || loaded.tool.kind == ToolKind::Exit;
        is_based && is_same_script && spec(&self.load, &loaded.tool) == spec(&user.load, &other.tool)
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

/// Returns whether two scripts and their modules have the same bytes, and neither comes from outside of its project.
fn has_same_sources(one: &Script, other: &Script) -> bool {
    let modules =
        |script: &Script| script.modules.iter().map(|module| module.source.clone()).collect::<Vec<_>>();
    let is_inside = one.linked.is_empty() && other.linked.is_empty();
    is_inside && one.source == other.source && modules(one) == modules(other)
}
