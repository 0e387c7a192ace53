//! Sources of tools: a project, an MCP server, or the program that embeds deftool.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;

use super::{CallContext, ToolCall, ToolError, ToolOutput, ToolRunner};
use crate::schema::ToolSet;

/// The tools of a source at one time, and their runner.
#[derive(Clone)]
pub struct Toolbox {
    /// Number of the generation. It increases with each change of the tools.
    pub generation: u64,
    /// The tools that a request may call.
    pub tools: ToolSet,
    /// The runner of the normal tools.
    pub runner: Arc<dyn ToolRunner>,
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// The tools of two sources.
pub struct JoinedTools {
    base: Arc<dyn ToolSource>,
    added: Arc<dyn ToolSource>,
    /// The generations that were returned, oldest first, and the tools of the newest.
    state: Mutex<(Vec<JoinedGeneration>, ToolSet)>,
}

/// A generation of joined tools. Its number is the sum of the numbers of its parts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct JoinedGeneration {
    base: u64,
    added: u64,
}

/// Maximum number of remembered generations.
const MAX_GENERATIONS: usize = 100;

impl JoinedTools {
    /// Joins two sources. The tools of `added` replace tools of the same name.
    pub fn new(base: Arc<dyn ToolSource>, added: Arc<dyn ToolSource>) -> Self {
        Self { base, added, state: Mutex::default() }
    }
}

impl ToolSource for JoinedTools {
    fn current(&self) -> Toolbox {
        let (base, added) = (self.base.current(), self.added.current());
        let generation = JoinedGeneration { base: base.generation, added: added.generation };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, tools) = &mut *state;
        if known.last() != Some(&generation) {
            let kept = base.tools.iter().filter(|entry| added.tools.get(&entry.name).is_none());
            *tools = ToolSet::new(kept.chain(added.tools.iter()).cloned());
            known.push(generation);
            if known.len() > MAX_GENERATIONS {
                known.remove(0);
            }
        }
        Toolbox {
            generation: generation.base + generation.added,
            tools: tools.clone(),
            runner: Arc::new(JoinedRunner { base: base.runner, added }),
        }
    }

    fn changes_since(&self, generation: u64) -> String {
        let known = self.state.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        let at = known.iter().rfind(|known| known.base + known.added <= generation).or(known.first());
        let (Some(at), Some(last)) = (at, known.last()) else { return String::new() };
        let base = (at.base != last.base).then(|| self.base.changes_since(at.base));
        let added = (at.added != last.added).then(|| self.added.changes_since(at.added));
        base.into_iter().chain(added).collect::<Vec<_>>().join("; ")
    }
}

struct JoinedRunner {
    base: Arc<dyn ToolRunner>,
    added: Toolbox,
}

impl ToolRunner for JoinedRunner {
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let is_added = self.added.tools.get(&call.name).is_some();
        let runner = if is_added { &self.added.runner } else { &self.base };
        runner.run(call, context)
    }
}
