//! One consistent load of a project, as requests run on it.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::grants::Trust;
use super::load::{LoadedTool, ScriptState, load};
use super::scripts::is_same_script;
use super::{Load, ProjectError, resolve_inputs};
use crate::diagnostic::render::render_concise;
use crate::diagnostic::{Diagnostic, Severity};
use crate::schema::ToolSet;
use crate::script::ScriptRunner;
use crate::spec::{Permissions, ToolKind, WorkerSpec, nearest};
use crate::syntax::quoted;
use crate::text::Spanned;
use crate::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, ToolRunner};

/// Specs, schemas and scripts that belong together. Immutable.
#[derive(Debug)]
pub struct Generation {
    /// 1 for the first.
    pub number: u64,
    /// What was read.
    pub load: Load,
    /// How long loading took.
    pub took: Duration,
    /// What is different from the generation before it.
    pub changes: Changes,
    tools: BTreeMap<String, LoadedTool>,
    /// The names of `tools` in the order of the specs.
    order: Vec<String>,
}

/// What a reload changed, by the names of tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// New tools.
    pub added: Vec<String>,
    /// Tools that are gone.
    pub removed: Vec<String>,
    /// Tools whose spec or script is another.
    pub changed: Vec<String>,
    /// Tools that may use more than before.
    pub widened: Vec<String>,
    /// What each of these may use now and did not, as its spec says it.
    pub grants: Vec<String>,
    /// Tools that are broken now and whose last good version stays.
    pub kept: Vec<String>,
}

impl Changes {
    /// Whether every tool is as it was.
    pub fn is_empty(&self) -> bool {
        let Self { added, removed, changed, widened, grants: _, kept } = self;
        [added, removed, changed, widened, kept].into_iter().all(Vec::is_empty)
    }
}

/// `added two; changed get_weather`, or that nothing did.
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widened = self.widened.iter().zip(&self.grants);
        let widened = widened.map(|(name, grants)| format!("{name} ({grants})")).collect();
        let lists = [
            ("added", &self.added),
            ("removed", &self.removed),
            ("changed", &self.changed),
            ("may now use more:", &widened),
            ("broken, last good version kept:", &self.kept),
        ];
        let mut is_first = true;
        for (what, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
            let separator = if std::mem::take(&mut is_first) { "" } else { "; " };
            write!(f, "{separator}{what} {}", names.join(", "))?;
        }
        if is_first { f.write_str("no tool changed") } else { Ok(()) }
    }
}

impl Generation {
    /// Loads the project at `root`; names in messages are relative to `from`. A tool that is broken now stays as it
    /// was in `before`, spec and script together, while the others advance.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn load(root: &Path, from: &Path, before: Option<&Self>) -> Result<Self, ProjectError> {
        let started = Instant::now();
        let load = load(&resolve_inputs(&[], root)?, from)?;
        Ok(match before {
            Some(before) => Self::after(before, load, started, |_| true).0,
            None => Self::first(load, started),
        })
    }

    /// The first generation of a project; its load, which holds nothing of another project, began when it `started`.
    pub(crate) fn first(load: Load, started: Instant) -> Self {
        let tools = valid_tools(&load);
        Self::of(1, load, started, Changes::default(), tools)
    }

    /// The generation after `before`, and the tools that it has only because their being gone is in doubt: all that are
    /// missing of which `is_gone` says no.
    pub(super) fn after(
        before: &Self,
        load: Load,
        started: Instant,
        is_gone: impl Fn(&str) -> bool,
    ) -> (Self, Vec<String>) {
        let mut tools = valid_tools(&load);
        // Both are sorted, and most names are in both.
        let mut former = before.tools.iter().peekable();
        for (name, loaded) in &mut tools {
            while former.next_if(|(former, _)| *former < name).is_some() {}
            if let Some((_, before)) = former.next_if(|(former, _)| *former == name) {
                loaded.take_over(before);
            }
        }
        let mut changes = Changes::default();
        let missing = keep_last_good(&mut tools, &load, before, &mut changes, is_gone);
        compare(&before.tools, &tools, &mut changes);
        (Self::of(before.number + 1, load, started, changes, tools), missing)
    }

    fn of(
        number: u64,
        load: Load,
        started: Instant,
        changes: Changes,
        tools: BTreeMap<String, LoadedTool>,
    ) -> Self {
        // The first request shall not wait for what is new.
        for loaded in tools.values() {
            loaded.entry();
        }
        let order = order_of(&tools, &load);
        Self { number, load, took: started.elapsed(), changes, tools, order }
    }

    /// Whether its tools are those of `before`, and those that are broken, too.
    pub(super) fn has_tools_of(&self, before: &Self) -> bool {
        let Changes { added, removed, changed, widened, grants: _, kept } = &self.changes;
        let is_same = [added, removed, changed, widened].into_iter().all(Vec::is_empty);
        is_same && *kept == before.changes.kept
    }

    /// Whether nobody would notice the difference from `before`.
    pub(super) fn is_as(&self, before: &Self) -> bool {
        self.has_tools_of(before) && self.order == before.order && self.load.is_as(&before.load)
    }

    /// What is different from the generation before it, how long loading took, and the first error.
    pub fn describe(&self) -> String {
        let is_error = |finding: &&Diagnostic| finding.severity == Severity::Error;
        let error = self.load.findings.iter().find(is_error);
        let error = error.map(|error| format!(": {}", render_concise(error, &self.load.sources)));
        format!("{} ({} ms){}", self.changes, self.took.as_millis(), error.unwrap_or_default())
    }

    /// The tool called `name`.
    pub fn tool(&self, name: &str) -> Option<&LoadedTool> {
        self.tools.get(name)
    }

    /// The tools, by their names.
    pub fn tools(&self) -> impl Iterator<Item = &LoadedTool> {
        self.tools.values()
    }

    /// Names of the tools, sorted.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// What a worker may call, in the order of the specs: its own lists, or all of the project, without the tools whose
    /// script is broken.
    pub fn tool_set(&self, worker: &WorkerSpec) -> ToolSet {
        let names = |list: &Option<Vec<Spanned<String>>>| -> Option<HashSet<String>> {
            list.as_ref().map(|list| list.iter().map(|name| name.value.clone()).collect())
        };
        let (normal, exit) = (names(&worker.tools), names(&worker.exit_tools));
        let in_order = self.order.iter().filter_map(|name| self.tools.get(name));
        let offered = in_order.filter(|loaded| {
            let list = match loaded.tool.kind {
                ToolKind::Normal => &normal,
                ToolKind::Exit => &exit,
            };
            let is_broken = matches!(loaded.script, ScriptState::Broken(_));
            !is_broken && list.as_ref().is_none_or(|list| list.contains(&loaded.tool.name.value))
        });
        ToolSet::new(offered.map(|loaded| loaded.entry_for(worker.api)))
    }
}

/// The first of each name.
fn valid_tools(load: &Load) -> BTreeMap<String, LoadedTool> {
    let mut tools: BTreeMap<String, LoadedTool> = BTreeMap::new();
    for loaded in load.valid_tools() {
        tools.entry(loaded.tool.name.value.clone()).or_insert_with(|| loaded.clone());
    }
    tools
}

/// The names of `tools` in the order of the specs of `load`, then those that have no place in it.
fn order_of(tools: &BTreeMap<String, LoadedTool>, load: &Load) -> Vec<String> {
    let written =
        load.tools.iter().map(|loaded| &loaded.tool.name.value).filter(|name| tools.contains_key(*name));
    let mut seen = HashSet::new();
    written.chain(tools.keys()).filter(|name| seen.insert(*name)).cloned().collect()
}

/// Tools of `before` that are broken in `load`, or whose file no longer reads, stay. So do those that are missing and
/// of which `is_gone` says no: their names.
fn keep_last_good(
    tools: &mut BTreeMap<String, LoadedTool>,
    load: &Load,
    before: &Generation,
    changes: &mut Changes,
    is_gone: impl Fn(&str) -> bool,
) -> Vec<String> {
    // Most of the time nothing is missing.
    let there: LazyCell<HashSet<&str>, _> =
        LazyCell::new(|| load.tools.iter().map(|loaded| loaded.tool.name.value.as_str()).collect());
    let broken = LazyCell::new(|| load.broken_files());
    let mut missing = Vec::new();
    for (name, good) in &before.tools {
        if matches!(good.script, ScriptState::Broken(_)) {
            continue;
        }
        match tools.get(name) {
            Some(now) if !matches!(now.script, ScriptState::Broken(_)) => continue,
            Some(_) => changes.kept.push(name.clone()),
            None => {
                if there.contains(name.as_str()) || broken.contains(&*good.file) {
                    changes.kept.push(name.clone());
                } else if is_gone(name) {
                    continue;
                } else {
                    missing.push(name.clone());
                }
            }
        }
        tools.insert(name.clone(), good.clone());
    }
    missing
}

fn compare(before: &BTreeMap<String, LoadedTool>, now: &BTreeMap<String, LoadedTool>, changes: &mut Changes) {
    changes.removed = before.keys().filter(|name| !now.contains_key(*name)).cloned().collect();
    for (name, loaded) in now {
        let Some(old) = before.get(name) else {
            changes.added.push(name.clone());
            continue;
        };
        if !same(old, loaded) {
            changes.changed.push(name.clone());
        }
        if old.tool.permissions != loaded.tool.permissions {
            let more = widened(&old.tool.permissions, &loaded.tool.permissions);
            if !more.is_empty() {
                changes.widened.push(name.clone());
                changes.grants.push(more.join(", "));
            }
        }
    }
}

fn same(old: &LoadedTool, new: &LoadedTool) -> bool {
    let scripts = match (&old.script, &new.script) {
        (ScriptState::Ready(old), ScriptState::Ready(new)) => {
            Arc::ptr_eq(old, new) || is_same_script(old, new)
        }
        (ScriptState::Broken(old), ScriptState::Broken(new)) => old == new,
        (ScriptState::None, ScriptState::None) => true,
        (ScriptState::Ready(_) | ScriptState::Broken(_) | ScriptState::None, _) => false,
    };
    scripts && (Arc::ptr_eq(&old.tool, &new.tool) || old.is_defined_as(new))
}

/// What `new` allows beyond `old`, as a spec says it: `:net "api.example.org"`.
fn widened(old: &Permissions, new: &Permissions) -> Vec<String> {
    let lists = |permissions: &'_ Permissions| {
        let Permissions { net, read, write, run, env } = permissions.clone();
        [(":net", net), (":read", read), (":write", write), (":run", run), (":env", env)]
    };
    let mut more = Vec::new();
    for ((key, old), (_, new)) in lists(old).into_iter().zip(lists(new)) {
        let grants: Vec<String> =
            new.iter().filter(|grant| !old.contains(*grant)).map(|grant| quoted(grant)).collect();
        more.extend((!grants.is_empty()).then(|| format!("{key} {}", grants.join(" "))));
    }
    more
}

/// Runs the tools of one generation.
#[derive(Debug, Clone)]
pub struct GenerationRunner {
    /// Which.
    pub generation: Arc<Generation>,
    /// The threads that scripts run on.
    pub scripts: Arc<ScriptRunner>,
    /// What scripts may use of what their specs allow.
    pub trust: Trust,
}

impl ToolRunner for GenerationRunner {
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<Value, ToolError>> {
        let error = match self.generation.tool(&call.name).map(|loaded| &loaded.script) {
            Some(ScriptState::Ready(script)) => match self.trust.allow(script) {
                Ok(()) => return self.scripts.call(Arc::clone(script), call, context).boxed(),
                Err(error) => error,
            },
            Some(ScriptState::Broken(error)) => error.clone(),
            Some(ScriptState::None) => {
                let message = format!("`{}` is an exit tool: a signal, never run", call.name);
                ToolError::new(ToolErrorKind::UnknownTool, message)
            }
            None => unknown_tool(&call.name, self.generation.tool_names()),
        };
        std::future::ready(Err(error)).boxed()
    }
}

/// No tool of that name.
pub fn unknown_tool<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> ToolError {
    let known: Vec<&str> = known.collect();
    let advice = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => String::from("the project has none"),
        None => format!("there are: {}", known.join(", ")),
    };
    ToolError::new(ToolErrorKind::UnknownTool, format!("no tool called `{name}`; {advice}"))
}
