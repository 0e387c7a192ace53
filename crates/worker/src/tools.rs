//! The tools of a worker: those of the newest generation of a project.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use deftool_lang::schema::ToolSet;
use deftool_lang::spec::WorkerSpec;
use deftool_lang::tool::{ToolSource, Toolbox};
use deftool_project::{Generation, GenerationRunner, LiveProject, Trust, permission_requests};
use deftool_script::ScriptRunner;

use deftool_process::lock;

/// A source of trust decisions: which requested permissions the scripts of a generation get.
pub trait TrustSource: Send + Sync {
    /// Returns the permissions that are granted to the scripts of `generation`.
    fn of(&self, generation: &Generation) -> Trust;
}

/// Grants the same permissions to every generation.
impl TrustSource for Trust {
    fn of(&self, _: &Generation) -> Trust {
        self.clone()
    }
}

/// A tool source that provides the project's current tools to each model turn.
pub struct ProjectTools {
    project: Arc<LiveProject>,
    worker: WorkerSpec,
    trust: Box<dyn TrustSource>,
    scripts: Arc<ScriptRunner>,
    /// The tools that are not offered without trust.
    optional: HashSet<String>,
    /// The tool set of the last requested generation, with its number.
    cached: Mutex<Option<(u64, ToolSet)>>,
}

impl std::fmt::Debug for ProjectTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProjectTools").field("worker", &self.worker.name.value).finish_non_exhaustive()
    }
}

impl ProjectTools {
    /// Creates a source of the tools of `project` that `worker` may use. `scripts` runs them with the permissions that
    /// `trust` grants.
    pub fn new(
        project: Arc<LiveProject>,
        worker: WorkerSpec,
        trust: Box<dyn TrustSource>,
        scripts: Arc<ScriptRunner>,
    ) -> Self {
        Self { project, worker, trust, scripts, optional: HashSet::new(), cached: Mutex::default() }
    }

    /// Leaves the tools `names` out of each generation in which their permissions are not trusted. Other tools are
    /// offered, and their calls are refused.
    #[must_use]
    pub fn without_untrusted(mut self, names: HashSet<String>) -> Self {
        self.optional = names;
        self
    }

    /// Returns the project.
    pub fn project(&self) -> &LiveProject {
        &self.project
    }

    fn tool_set(&self, generation: &Generation) -> ToolSet {
        let mut cached = lock(&self.cached);
        match &*cached {
            Some((number, set)) if *number == generation.number => set.clone(),
            Some(_) | None => {
                let set = self.without_left_out(generation, generation.tool_set(&self.worker));
                *cached = Some((generation.number, set.clone()));
                set
            }
        }
    }

    /// Returns `set` without the optional tools that are not trusted now.
    fn without_left_out(&self, generation: &Generation, set: ToolSet) -> ToolSet {
        if self.optional.is_empty() {
            return set;
        }
        let tools = self.optional.iter().filter_map(|name| generation.tool(name));
        let refused = self.trust.of(generation).refused(permission_requests(&generation.load, tools));
        let refused: HashSet<String> = refused.into_iter().map(|request| request.tool).collect();
        ToolSet::new(set.iter().filter(|entry| !refused.contains(&entry.name)).cloned())
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
        let refused = self.trust.of(&current).refused(permission_requests(&current.load, offered));
        if refused.is_empty() {
            return changes;
        }
        let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
        format!("{changes}; not trusted, so calls are refused: {}", refused.join(", "))
    }
}
