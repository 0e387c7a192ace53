//! The tools of a project's newest generation as those of a worker.

use std::sync::{Arc, Mutex, PoisonError};

use super::toolbox::{ToolSource, Toolbox};
use crate::project::{Generation, GenerationRunner, LiveProject, Trust, wishes};
use crate::schema::ToolSet;
use crate::script::ScriptRunner;
use crate::spec::WorkerSpec;

/// What the scripts of each generation may use of what their specs want.
pub trait TrustSource: Send + Sync {
    /// What those of `generation` may use.
    fn of(&self, generation: &Generation) -> Trust;
}

/// The same for every generation.
impl TrustSource for Trust {
    fn of(&self, _: &Generation) -> Trust {
        self.clone()
    }
}

/// Gives each model turn the tools as they are on disk.
pub struct ProjectTools {
    project: LiveProject,
    worker: WorkerSpec,
    trust: Box<dyn TrustSource>,
    scripts: Arc<ScriptRunner>,
    /// The set of the newest generation that was asked for, by its number.
    cached: Mutex<Option<(u64, ToolSet)>>,
}

impl std::fmt::Debug for ProjectTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProjectTools").field("worker", &self.worker.name.value).finish_non_exhaustive()
    }
}

impl ProjectTools {
    /// The tools of `project` that `worker` may use, run by `scripts` as far as `trust` goes.
    pub fn new(
        project: LiveProject,
        worker: WorkerSpec,
        trust: Box<dyn TrustSource>,
        scripts: Arc<ScriptRunner>,
    ) -> Self {
        Self { project, worker, trust, scripts, cached: Mutex::default() }
    }

    /// The project.
    pub fn project(&self) -> &LiveProject {
        &self.project
    }

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

impl ToolSource for ProjectTools {
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
        let refused = self.trust.of(&current).refused(wishes(&current.load, offered));
        if refused.is_empty() {
            return changes;
        }
        let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
        format!("{changes}; not trusted, and refused at the call: {}", refused.join(", "))
    }
}
