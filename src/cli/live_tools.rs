//! The project's newest generation as a worker's tools.

use std::sync::Arc;

use crate::project::{GenerationRunner, LiveProject};
use crate::script::ScriptRunner;
use crate::spec::WorkerSpec;
use crate::worker::{ToolSource, Toolbox};

/// Gives each model turn the tools as they are on disk.
pub(super) struct LiveTools {
    pub(super) project: LiveProject,
    pub(super) worker: WorkerSpec,
    pub(super) scripts: Arc<ScriptRunner>,
}

impl ToolSource for LiveTools {
    fn current(&self) -> Toolbox {
        let generation = self.project.current();
        Toolbox {
            generation: generation.number,
            tools: generation.tool_set(&self.worker),
            runner: Arc::new(GenerationRunner { generation, scripts: Arc::clone(&self.scripts) }),
        }
    }

    fn changes_since(&self, generation: u64) -> String {
        self.project.changes_since(generation)
    }
}
