//! The project's newest generation as a worker's tools.

use std::sync::{Arc, Mutex, PoisonError};

use super::trust::ProjectTrust;
use crate::project::{Generation, GenerationRunner, LiveProject, wishes};
use crate::schema::ToolSet;
use crate::script::ScriptRunner;
use crate::spec::WorkerSpec;
use crate::worker::{ToolSource, Toolbox};

/// Gives each model turn the tools as they are on disk.
pub(super) struct LiveTools {
    pub(super) project: LiveProject,
    pub(super) worker: WorkerSpec,
    pub(super) trust: ProjectTrust,
    pub(super) scripts: Arc<ScriptRunner>,
    /// The set of the newest generation that was asked for, by its number.
    pub(super) cached: Mutex<Option<(u64, ToolSet)>>,
}

impl LiveTools {
    fn tool_set(&self, generation: &Generation) -> ToolSet {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some((number, set)) if *number == generation.number => set.clone(),
            Some(_) | None => {
                let set = generation.tool_set(&self.worker);
                *cached = Some((generation.number, set.clone()));
                set
            }
        }
    }
}

impl ToolSource for LiveTools {
    fn current(&self) -> Toolbox {
        let generation = self.project.current();
        Toolbox {
            generation: generation.number,
            tools: self.tool_set(&generation),
            runner: Arc::new(GenerationRunner {
                trust: self.trust.of(&generation),
                generation,
                scripts: Arc::clone(&self.scripts),
            }),
        }
    }

    fn changes_since(&self, generation: u64) -> String {
        let changes = self.project.changes_since(generation);
        let current = self.project.current();
        let offered = self.tool_set(&current);
        let offered = offered.iter().filter_map(|entry| current.tool(&entry.name));
        let refused = self.trust.refused(&current, wishes(&current.load, offered));
        if refused.is_empty() {
            return changes;
        }
        let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
        format!("{changes}; not trusted, and refused at the call: {}", refused.join(", "))
    }
}
