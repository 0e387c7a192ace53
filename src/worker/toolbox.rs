//! The tools of one model turn.

use std::sync::Arc;

use crate::schema::ToolSet;
use crate::tool::ToolRunner;

/// Schemas and the runner that answers them: one generation, for one worker.
#[derive(Clone)]
pub struct Toolbox {
    /// Number of the generation.
    pub generation: u64,
    /// What a request may call.
    pub tools: ToolSet,
    /// Runs the normal ones.
    pub runner: Arc<dyn ToolRunner>,
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Toolbox").field("generation", &self.generation).finish_non_exhaustive()
    }
}

/// Where the newest tools are had.
pub trait ToolSource: Send + Sync {
    /// The newest generation. Called when a model turn begins; must be quick.
    fn current(&self) -> Toolbox;

    /// What is different since that generation, for a person.
    fn changes_since(&self, _generation: u64) -> String {
        String::from("the tools were reloaded")
    }
}

/// A toolbox that never changes is its own source.
impl ToolSource for Toolbox {
    fn current(&self) -> Toolbox {
        self.clone()
    }
}
