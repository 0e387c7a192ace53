//! The tools of one model turn.

use std::sync::Arc;

use deftool_lang::schema::ToolSet;
use deftool_lang::tool::ToolRunner;

/// The tools of one generation for one worker, and their runner.
#[derive(Clone)]
pub struct Toolbox {
    /// Number of the generation.
    pub generation: u64,
    /// The tools that a request may call.
    pub tools: ToolSet,
    /// The runner of the normal tools.
    pub runner: Arc<dyn ToolRunner>,
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Toolbox").field("generation", &self.generation).finish_non_exhaustive()
    }
}

/// A source of tools.
pub trait ToolSource: Send + Sync {
    /// Returns the newest generation. Called at the start of each model turn; must be fast.
    fn current(&self) -> Toolbox;

    /// Describes the changes since a generation, for users.
    fn changes_since(&self, _generation: u64) -> String {
        String::from("the tools were reloaded")
    }
}

/// A toolbox is a source that never changes.
impl ToolSource for Toolbox {
    fn current(&self) -> Toolbox {
        self.clone()
    }
}
