//! Consistent, immutable versions of a project. Each request uses one version.

mod user;

use std::cell::LazyCell;
use std::collections::HashSet;
use std::convert::identity;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::diagnostic::{Diagnostic, Severity};
use deftool_lang::schema::ToolSet;
use deftool_lang::spec::{Permissions, ToolKind, ToolSelection, WorkerSpec, advice_on_name};
use deftool_lang::syntax::quoted;
use deftool_lang::text::Spanned;
use deftool_lang::tool::{
    CallContext, ToolCall, ToolError, ToolErrorKind, ToolOutput, ToolRunner, check_result,
};
use deftool_script::ScriptRunner;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::load::{load, load_with, resolve_inputs};
use crate::model::{
    CurrentFolder, Load, LoadOptions, LoadedTool, ProjectError, ScriptState, ToolOrigin, is_same_script,
};
use crate::permissions::Trust;

/// Specs, schemas and scripts of one load. Immutable.
#[derive(Debug)]
pub struct Generation {
    /// The number of the generation, starting at 1.
    pub number: u64,
    /// The load that the generation was created from.
    pub load: Load,
    /// The duration of the load.
    pub took: Duration,
    /// The differences from the previous generation.
    pub changes: Changes,
    /// Sorted by name.
    tools: Vec<Arc<LoadedTool>>,
    /// Whether tools of earlier generations were kept.
    has_kept: bool,
    /// The user's own project, if `tools` has its tools, too.
    user: Option<Arc<Self>>,
}

/// The changes of a reload, as tool names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// New tools.
    pub added: Vec<String>,
    /// Removed tools.
    pub removed: Vec<String>,
    /// Tools with a changed spec or script.
    pub changed: Vec<String>,
    /// Tools with new permissions.
    pub widened: Vec<String>,
    /// For each tool in `widened`: its new permissions in spec syntax.
    pub grants: Vec<String>,
    /// Broken tools that keep their last good version.
    pub kept: Vec<String>,
    /// Tools that were in `kept` before, and are valid again.
    pub repaired: Vec<String>,
}

impl Changes {
    /// Returns whether no tool changed.
    pub fn is_empty(&self) -> bool {
        let Self { added, removed, changed, widened, grants: _, kept, repaired } = self;
        [added, removed, changed, widened, kept, repaired].into_iter().all(Vec::is_empty)
    }
}

/// Formats the changes, for example `added two; changed get_weather`.
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widened = self.widened.iter().zip(&self.grants);
        let widened = widened.map(|(name, grants)| format!("{name} ({grants})")).collect();
        let lists = [
            ("added", &self.added),
            ("removed", &self.removed),
            ("changed", &self.changed),
            ("new permissions:", &widened),
            ("broken, last good version kept:", &self.kept),
            ("works again:", &self.repaired),
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
    /// Loads the project at `root`. File names in messages are relative to `from`. A broken tool keeps its version from
    /// `before`, with spec and script, while the others are updated.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn load(root: &Path, from: &Path, before: Option<&Self>) -> Result<Self, ProjectError> {
        let started = Instant::now();
        let load = load(&resolve_inputs(&[], root)?, from)?;
        Ok(match before {
            Some(before) => before.next(load, started),
            None => Self::first(load, started),
        })
    }

    /// Loads one tool of the project at `root`. If the project has no tool of this name, loads all tools. `user`: the folder
    /// that the user works in, if the project is the user's own ([`LoadOptions::user`]).
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn load_tool(
        root: &Path,
        from: &Path,
        name: &str,
        user: Option<&CurrentFolder>,
    ) -> Result<Self, ProjectError> {
        let started = Instant::now();
        let inputs = resolve_inputs(&[], root)?;
        let load = |selection| {
            load_with(
                &inputs,
                from,
                &LoadOptions { with_scripts: true, selection, user: user.cloned(), ..LoadOptions::default() },
            )
        };
        let named = load(ToolSelection::named(name))?;
        let is_found = named.tools.iter().any(|loaded| loaded.tool.name.value == name);
        Ok(Self::first(if is_found { named } else { load(ToolSelection::default())? }, started))
    }

    /// Loads the user's own project at `root`, whose user works in `current`.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn load_of_user(root: &Path, from: &Path, current: &CurrentFolder) -> Result<Self, ProjectError> {
        let started = Instant::now();
        let user = Some(current.clone());
        let options = LoadOptions { with_scripts: true, user, ..LoadOptions::default() };
        Ok(Self::first(load_with(&resolve_inputs(&[], root)?, from, &options)?, started))
    }

    /// Creates the first generation of a project. The load must contain one project only. `started`: when the load
    /// began.
    pub fn first(load: Load, started: Instant) -> Self {
        let tools = valid_tools(&load);
        Self::of(1, load, started, Changes::default(), tools)
    }

    /// Creates the generation after `self`. A broken tool keeps its version from `self`.
    #[must_use]
    pub fn next(&self, load: Load, started: Instant) -> Self {
        Self::after(self, load, started, |_| true).0
    }

    /// Creates the generation after `self` if `load` was made from its load, and differs only in scripts.
    fn with_new_scripts(&self, load: &Load) -> Option<(Vec<Arc<LoadedTool>>, Changes)> {
        if self.has_kept || !load.shares_specs(&self.load) {
            return None;
        }
        let (mut tools, mut changes) = (self.tools.clone(), Changes::default());
        for (before, now) in self.load.tools.iter().zip(&load.tools) {
            if Arc::ptr_eq(before, now) {
                continue;
            }
            let (ScriptState::Ready(before), ScriptState::Ready(script)) = (&before.script, &now.script)
            else {
                return None;
            };
            if !Arc::ptr_eq(before, script) {
                let loaded = tools.get_mut(position(&self.tools, name_of(now)).ok()?)?;
                // Emacs can hold another tool with the same name.
                if Arc::ptr_eq(&loaded.tool, &now.tool) {
                    *loaded = Arc::clone(now);
                    changes.changed.push(name_of(now).to_owned());
                }
            }
        }
        changes.changed.sort_unstable();
        Some((tools, changes))
    }

    /// Creates the generation after `before`. Also returns the tools that are missing in `load` and kept because
    /// `is_gone` returned false for them.
    pub(crate) fn after(
        before: &Self,
        load: Load,
        started: Instant,
        is_gone: impl Fn(&str) -> bool,
    ) -> (Self, Vec<String>) {
        let number = before.number + 1;
        if let Some((tools, changes)) = before.with_new_scripts(&load) {
            return (
                Self { number, load, took: started.elapsed(), changes, tools, has_kept: false, user: None },
                Vec::new(),
            );
        }
        let mut tools = valid_tools(&load);
        // Both lists are sorted by name, and most names occur in both.
        let mut previous = before.tools.iter().peekable();
        for loaded in &mut tools {
            while previous.next_if(|previous| name_of(previous) < name_of(loaded)).is_some() {}
            if let Some(before) = previous.next_if(|previous| name_of(previous) == name_of(loaded)) {
                loaded.reuse_from(before);
            }
        }
        let mut changes = Changes::default();
        let missing = keep_last_good(&mut tools, &load, before, &mut changes, is_gone);
        compare(&before.tools, &tools, &mut changes);
        let is_repaired =
            |name: &&String| !changes.kept.contains(*name) && position(&tools, name.as_str()).is_ok();
        changes.repaired = before.changes.kept.iter().filter(is_repaired).cloned().collect();
        let has_kept = !changes.kept.is_empty() || !missing.is_empty();
        (Self { has_kept, ..Self::of(number, load, started, changes, tools) }, missing)
    }

    fn of(number: u64, load: Load, started: Instant, changes: Changes, tools: Vec<Arc<LoadedTool>>) -> Self {
        // Compile new schemas now, so that the first request does not have to wait.
        for loaded in &tools {
            loaded.entry();
        }
        Self { number, load, took: started.elapsed(), changes, tools, has_kept: false, user: None }
    }

    /// Returns whether the tools are the same as in `before`, including the broken ones.
    pub(crate) fn has_same_tools(&self, before: &Self) -> bool {
        // A repaired tool was kept before.
        let Changes { added, removed, changed, widened, grants: _, kept, repaired: _ } = &self.changes;
        let is_same = [added, removed, changed, widened].into_iter().all(Vec::is_empty);
        is_same && *kept == before.changes.kept
    }

    /// Returns whether there is no visible difference from `before`.
    pub(crate) fn is_equivalent(&self, before: &Self) -> bool {
        self.has_same_tools(before)
            && self
                .in_order()
                .map(|loaded| &loaded.tool.name.value)
                .eq(before.in_order().map(|loaded| &loaded.tool.name.value))
            && self.load.is_equivalent(&before.load)
    }

    /// Describes the changes, the load time and the first error.
    pub fn describe(&self) -> String {
        let is_error = |finding: &&Diagnostic| finding.severity == Severity::Error;
        let error = self.load.findings.iter().find(is_error);
        let error = error.map(|error| format!(": {}", render_concise(error, &self.load.sources)));
        format!("{} ({} ms){}", self.changes, self.took.as_millis(), error.unwrap_or_default())
    }

    /// Returns the tool called `name`.
    pub fn tool(&self, name: &str) -> Option<&LoadedTool> {
        self.tools.get(position(&self.tools, name).ok()?).map(AsRef::as_ref)
    }

    /// Returns the tool called `name`.
    ///
    /// # Errors
    /// If the tool does not exist, or if its spec has errors; the error then contains them.
    pub fn find_tool(&self, name: &str) -> Result<&LoadedTool, ToolError> {
        if let Some(loaded) = self.tool(name) {
            return Ok(loaded);
        }
        let load = &self.load;
        let broken = load.tools.iter().find(|loaded| loaded.tool.name.value == name && !loaded.tool.valid);
        let Some(broken) = broken else {
            return match self.user().filter(|user| user.defines(name)) {
                Some(user) => user.find_tool(name),
                None => Err(unknown_tool(name, self.tool_names())),
            };
        };
        let (source, span) = (broken.tool.source, broken.tool.span);
        let errors = load.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let errors = errors
            .filter(|error| error.primary.source == source)
            .filter(|error| error.primary.span.start >= span.start && error.primary.span.end <= span.end);
        let mut errors = errors.map(|error| render_concise(error, &load.sources));
        let first = errors.next().unwrap_or_default();
        let mut error =
            ToolError::new(ToolErrorKind::Load, format!("the spec of `{name}` has errors: {first}"));
        let more: Vec<String> = errors.collect();
        error.details = (!more.is_empty()).then(|| more.join("\n"));
        Err(error)
    }

    /// Returns the tools, sorted by name.
    pub fn tools(&self) -> impl Iterator<Item = &LoadedTool> {
        self.tools.iter().map(AsRef::as_ref)
    }

    /// Returns the tools in spec order, followed by those that are not in `load`.
    fn in_order(&self) -> impl Iterator<Item = &LoadedTool> {
        let written = self.load.tools.iter().map(|loaded| name_of(loaded));
        let mut seen = HashSet::new();
        let names = written.chain(self.tool_names()).filter(move |name| seen.insert(*name));
        names.filter_map(|name| self.tool(name))
    }

    /// Returns the tool names, sorted.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools().map(name_of)
    }

    /// Returns the tools of a worker in spec order: the tools and exit tools in its lists. Without a list, all tools of
    /// that kind are included. Tools with a broken script are left out. Those of the user are included, without their exit
    /// tools, which belong to the workers of the user.
    pub fn tool_set(&self, worker: &WorkerSpec) -> ToolSet {
        let names = |list: &Option<Vec<Spanned<String>>>| -> Option<HashSet<String>> {
            list.as_ref().map(|list| list.iter().map(|name| name.value.clone()).collect())
        };
        let (normal, exit) = (names(&worker.tools), names(&worker.exit_tools));
        let offered = self.in_order().filter(|loaded| {
            let list = match loaded.tool.kind {
                ToolKind::Normal => &normal,
                ToolKind::Exit => &exit,
            };
            let is_broken = matches!(loaded.script, ScriptState::Broken(_));
            let is_listed = match loaded.origin {
                ToolOrigin::User if self.user.is_some() => loaded.tool.kind == ToolKind::Normal,
                ToolOrigin::User | ToolOrigin::Project | ToolOrigin::Replacement => {
                    list.as_ref().is_none_or(|list| list.contains(&loaded.tool.name.value))
                }
            };
            is_listed && !is_broken
        });
        ToolSet::new(offered.map(|loaded| loaded.entry_for(worker.api.unwrap_or_default())))
    }
}

fn name_of(loaded: &LoadedTool) -> &str {
    &loaded.tool.name.value
}

/// Returns the index of a tool in a list that is sorted by name, or the index at which it belongs.
fn position(tools: &[Arc<LoadedTool>], name: &str) -> Result<usize, usize> {
    tools.binary_search_by(|loaded| name_of(loaded).cmp(name))
}

/// Returns the first valid tool of each name, sorted by name.
fn valid_tools(load: &Load) -> Vec<Arc<LoadedTool>> {
    let mut tools: Vec<Arc<LoadedTool>> = load.shared_valid_tools().cloned().collect();
    tools.sort_by(|one, other| name_of(one).cmp(name_of(other)));
    tools.dedup_by(|next, first| name_of(next) == name_of(first));
    tools
}

/// Keeps tools of `before` that are broken in `load` or in a file with errors. Also keeps missing tools for which
/// `is_gone` returns false, and returns their names.
fn keep_last_good(
    tools: &mut Vec<Arc<LoadedTool>>,
    load: &Load,
    before: &Generation,
    changes: &mut Changes,
    is_gone: impl Fn(&str) -> bool,
) -> Vec<String> {
    // Computed on demand: usually no tool is missing.
    let present: LazyCell<HashSet<&str>, _> =
        LazyCell::new(|| load.tools.iter().map(|loaded| loaded.tool.name.value.as_str()).collect());
    let broken = LazyCell::new(|| load.broken_files());
    let mut missing = Vec::new();
    for good in &before.tools {
        let name = &good.tool.name.value;
        if matches!(good.script, ScriptState::Broken(_)) {
            continue;
        }
        let place = position(tools, name);
        match place.ok().and_then(|index| tools.get_mut(index)) {
            Some(now) if !matches!(now.script, ScriptState::Broken(_)) => {}
            Some(now) => {
                changes.kept.push(name.clone());
                *now = good.clone();
            }
            None => {
                if present.contains(name.as_str()) || broken.contains(&*good.file) {
                    changes.kept.push(name.clone());
                } else if is_gone(name) {
                    continue;
                } else {
                    missing.push(name.clone());
                    // It is still broken: a file may be empty for a moment while it is saved.
                    changes.kept.extend(before.changes.kept.contains(name).then(|| name.clone()));
                }
                tools.insert(place.unwrap_or_else(identity), good.clone());
            }
        }
    }
    missing
}

fn compare(before: &[Arc<LoadedTool>], now: &[Arc<LoadedTool>], changes: &mut Changes) {
    let is_gone = |name: &&str| position(now, name).is_err();
    changes.removed =
        before.iter().map(|loaded| name_of(loaded)).filter(is_gone).map(str::to_owned).collect();
    for loaded in now {
        let name = &loaded.tool.name.value;
        let Some(old) = position(before, name).ok().and_then(|index| before.get(index)) else {
            changes.added.push(name.clone());
            continue;
        };
        if Arc::ptr_eq(old, loaded) {
            continue;
        }
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
    scripts && (Arc::ptr_eq(&old.tool, &new.tool) || old.has_same_definition(new))
}

/// Returns the permissions of `new` that `old` lacks, in spec syntax: `:net "api.example.org"`.
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

/// A [`ToolRunner`] for the tools of one generation.
#[derive(Debug, Clone)]
pub struct GenerationRunner {
    /// The generation.
    pub generation: Arc<Generation>,
    /// The threads that scripts run on.
    pub scripts: Arc<ScriptRunner>,
    /// The trusted permissions.
    pub trust: Trust,
}

impl ToolRunner for GenerationRunner {
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let Some(loaded) = self.generation.tool(&call.name) else {
            return std::future::ready(Err(unknown_tool(&call.name, self.generation.tool_names()))).boxed();
        };
        let error = match &loaded.script {
            ScriptState::Ready(script) => {
                match self.trust.allow_tool(self.generation.load_of(loaded), loaded) {
                    Ok(()) => {
                        let result = self.scripts.call(Arc::clone(script), call, context);
                        return async move { check_result(loaded.entry(), result.await?) }.boxed();
                    }
                    Err(error) => error,
                }
            }
            ScriptState::Broken(error) => error.clone(),
            ScriptState::None => {
                let message = format!("`{}` is an exit tool and cannot be run", call.name);
                ToolError::new(ToolErrorKind::UnknownTool, message)
            }
        };
        std::future::ready(Err(error)).boxed()
    }
}

/// Returns the error for an unknown tool.
pub fn unknown_tool<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> ToolError {
    let advice = advice_on_name(name, "tools", known);
    ToolError::new(ToolErrorKind::UnknownTool, format!("unknown tool `{name}`; {advice}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A script that is broken, then missing with its spec for a moment, then valid.
    #[test]
    fn a_repaired_tool_is_reported_even_if_its_file_was_empty_for_a_moment() {
        const SPEC: &str = "(deftool :name \"a\" :description \"d\")";
        let folder = tempfile::tempdir().unwrap();
        for name in ["specs", "scripts"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let mut generation = Generation::first(Load::default(), Instant::now());
        for (spec, script, changes) in [
            (SPEC, "return function() end", "added a"),
            (SPEC, "return function(", "broken, last good version kept: a"),
            ("", "return function(", "broken, last good version kept: a"),
            (SPEC, "return function() end", "works again: a"),
            (SPEC, "return function() end", "no tool changed"),
            ("(deftool :name \"a\" :args 1)", "return function() end", "broken, last good version kept: a"),
            (SPEC, "return function() return 1 end", "changed a; works again: a"),
        ] {
            fs::write(folder.path().join("specs/a.eld"), spec).unwrap();
            fs::write(folder.path().join("scripts/a.lua"), script).unwrap();
            let load = load(&resolve_inputs(&[], folder.path()).unwrap(), folder.path()).unwrap();
            generation = Generation::after(&generation, load, Instant::now(), |_| false).0;
            assert_eq!(generation.changes.to_string(), changes, "{spec} {script}");
        }
    }
}
