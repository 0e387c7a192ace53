//! The scripts of tools: locates them, compiles them with their modules and checks them against the specs. Never runs
//! them.
//!
//! Lookup runs in parallel. Findings are reported (`script_findings`) in the order of the tools. A tool with unchanged
//! spec, script and modules is not checked again and keeps its `Arc<Script>`, which owns the cached Lua states.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use deftool_lang::spec::{Argument, Tool, ToolKind};
use deftool_script::{
    Contract, LoadError, Module, Parameter, PathGrant, Require, Script, ScriptPermissions, check_script,
    find_requires,
};

use super::cache::{Cache, CachedFile, MAX_SCRIPT_READ, key_of};
use super::discover::scripts_folder;
use super::modules::Unit;
use super::outside::check_inside;
use super::read::display_name;
use super::script_findings::ScriptReporter;
use super::{Load, LoadedTool, ScriptState, parallel};

/// Loads the scripts of all normal tools in projects. Reports unused scripts in the projects of `whole`.
pub(super) fn load_scripts(cache: &mut Cache, load: &mut Load, whole: &HashSet<&Path>, from: &Path) {
    let roots: HashSet<&Path> = load.roots.values().map(AsRef::as_ref).collect();
    for root in roots.into_iter().chain(whole.iter().copied()) {
        cache.scan_scripts(root);
    }
    let mut previous = std::mem::take(&mut cache.tools);
    let mut known = Vec::with_capacity(load.tools.len());
    let mut unknown = Vec::new();
    for (index, loaded) in load.tools.iter().enumerate() {
        let cached = previous.remove(&address(&loaded.tool));
        let is_current = cached.as_ref().is_some_and(|cached| cached.is_current(cache, load, from));
        // An invalid spec is already reported, and a problem with its script may be a consequence.
        let is_wanted = loaded.tool.kind == ToolKind::Normal && loaded.tool.valid;
        let root = load.roots.get(&loaded.tool.source).filter(|_| is_wanted);
        if let Some(root) = root.filter(|_| !is_current) {
            unknown.push((index, &loaded.tool, root));
        }
        match cached {
            Some(cached) if is_current => known.push(Some(cached)),
            Some(cached) => {
                previous.insert(address(&loaded.tool), cached);
                known.push(None);
            }
            None => known.push(None),
        }
    }
    // Spec and script must be consistent, so the spec must not change during the load.
    cache.add_dependencies(unknown.iter().filter_map(|(_, tool, _)| load.files.get(&tool.source)));
    let previous: HashMap<&str, &Arc<Script>> =
        previous.values().filter_map(CachedTool::named_script).collect();
    let lookup = parallel::map(&unknown, |_, (_, tool, root)| {
        let previous = previous.get(tool.name.value.as_str()).copied();
        CachedTool::look_up(cache, tool, root, previous, from)
    });
    for ((index, ..), lookup) in unknown.into_iter().zip(lookup) {
        if let Some(place) = known.get_mut(index) {
            *place = Some(lookup);
        }
    }
    let mut reporter = ScriptReporter::new(load, &known, whole, cache.snapshot(), from);
    let mut tools = std::mem::take(&mut load.tools);
    for (loaded, cached) in tools.iter_mut().zip(known) {
        let Some(mut cached) = cached else { continue };
        loaded.script = cached.report(load, &mut reporter);
        cache.tools.insert(address(&loaded.tool), cached);
    }
    load.tools = tools;
    reporter.finish(cache, load);
    load.sort_findings();
}

/// Returns the identity of a tool across loads. Entries with this key also hold the `Arc`, so it is not reused.
fn address(tool: &Arc<Tool>) -> usize {
    Arc::as_ptr(tool).addr()
}

/// The file of a script or module, not yet bound to a tool.
pub(super) struct ScriptFile {
    pub(super) script: Script,
    pub(super) requires: Vec<Require>,
    module: OnceLock<Arc<Module>>,
}

impl CachedFile for ScriptFile {
    const MAX_READ: u64 = MAX_SCRIPT_READ;

    fn matches_bytes(&self, bytes: &[u8]) -> bool {
        *self.script.source == *bytes
    }
}

impl ScriptFile {
    /// Returns the file as a module. Compiled once.
    pub(super) fn module(&self) -> &Arc<Module> {
        self.module.get_or_init(|| Arc::new(Module::new(self.script.file.clone(), &self.script.source)))
    }
}

/// Reads the file of a script or module of the project at `root`.
///
/// # Errors
/// If it cannot be read or is outside of the project.
pub(super) fn read_script(
    cache: &Cache,
    root: &Path,
    path: &Path,
    from: &Path,
) -> std::io::Result<Arc<ScriptFile>> {
    check_inside(root, path)?;
    let make = |bytes: Vec<u8>| ScriptFile {
        requires: find_requires(&bytes),
        script: Script::new("", display_name(path, from), bytes),
        module: OnceLock::new(),
    };
    cache.read(&cache.scripts, path, |_| true, make)
}

/// The result of looking up the script of a tool.
pub(super) enum ScriptLookup {
    /// No file.
    Missing,
    /// A file that cannot be read, with the reason.
    Unreadable(ScriptLocation, String),
    /// A script, with its contract or the reason why it does not compile.
    Read(ScriptLocation, Arc<Script>, Result<Contract, LoadError>),
}

/// The location of a tool's script.
#[derive(PartialEq, Eq)]
pub(super) struct ScriptLocation {
    pub(super) path: PathBuf,
    /// A second script of the tool, which is ignored.
    pub(super) twin: Option<PathBuf>,
}

impl ScriptLocation {
    /// Returns the first existing path. `NAME.lua` comes before `NAME.luau`.
    fn among(candidates: &[PathBuf], cache: &Cache) -> Option<Self> {
        let mut existing = candidates.iter().filter(|path| cache.stamp(path).is_some());
        let path = existing.next()?.clone();
        Some(Self { path, twin: existing.next().cloned() })
    }
}

/// Returns why it is unknown whether a file exists at `path`: a folder without read permission, or circular links.
pub(super) fn access_error(path: &Path) -> Option<std::io::Error> {
    let error = std::fs::metadata(path).err()?;
    let is_absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    (!is_absent).then_some(error)
}

/// A tool whose script was looked up, with everything the result depends on.
pub(super) struct CachedTool {
    tool: Arc<Tool>,
    root: Arc<Path>,
    /// The paths at which the script may be.
    pub(super) candidates: Vec<PathBuf>,
    lookup: ScriptLookup,
    /// The files of the script and its modules.
    unit: Unit,
    /// Those of the paths that are outside of the scanned folders.
    pub(super) external: Vec<PathBuf>,
    /// Keys of all paths that the result depends on.
    keys: Vec<u64>,
    /// Whether the tool has no findings, not even suppressed ones.
    is_clean: bool,
}

impl CachedTool {
    fn look_up(
        cache: &Cache,
        tool: &Arc<Tool>,
        root: &Arc<Path>,
        previous: Option<&Arc<Script>>,
        from: &Path,
    ) -> Self {
        let candidates = script_candidates(root, tool);
        let mut unit = Unit::default();
        let lookup = match ScriptLocation::among(&candidates, cache) {
            None => {
                let unreadable = |path: &PathBuf| {
                    let found = ScriptLocation { path: path.clone(), twin: None };
                    Some(ScriptLookup::Unreadable(found, access_error(path)?.to_string()))
                };
                candidates.iter().find_map(unreadable).unwrap_or(ScriptLookup::Missing)
            }
            Some(found) => match read_script(cache, root, &found.path, from) {
                Err(error) => ScriptLookup::Unreadable(found, error.to_string()),
                Ok(file) => {
                    unit = Unit::of(cache, root, &found.path, &file, from);
                    let script = script_of(tool, root, &file, &unit);
                    let contract = check_script(&script);
                    let same = previous.filter(|previous| is_same_script(previous, &script));
                    let script = same.map_or_else(|| Arc::new(script), Arc::clone);
                    ScriptLookup::Read(found, script, contract)
                }
            },
        };
        let all = || candidates.iter().chain(unit.paths());
        cache.add_dependencies(all());
        let keys = all().map(|path| key_of(path)).collect();
        let external = all().filter(|path| !cache.snapshot().covers(path)).cloned().collect();
        let (tool, root) = (Arc::clone(tool), Arc::clone(root));
        Self { tool, root, candidates, lookup, unit, external, keys, is_clean: false }
    }

    /// Returns whether a new lookup would have the same result.
    fn is_current(&self, cache: &Cache, load: &Load, from: &Path) -> bool {
        if load.roots.get(&self.tool.source) != Some(&self.root) || self.unit.has_missing_modules() {
            return false;
        }
        if !cache.may_have_changed(&self.keys) {
            return !matches!(self.lookup, ScriptLookup::Unreadable(..));
        }
        let is_found = match &self.lookup {
            ScriptLookup::Missing => ScriptLocation::among(&self.candidates, cache).is_none(),
            ScriptLookup::Unreadable(..) => false,
            ScriptLookup::Read(found, ..) => {
                let mut existing = self.candidates.iter().filter(|path| cache.stamp(path).is_some());
                existing.next() == Some(&found.path) && existing.next() == found.twin.as_ref()
            }
        };
        is_found && self.unit.is_current(cache, &self.root, from)
    }

    fn named_script(&self) -> Option<(&str, &Arc<Script>)> {
        match &self.lookup {
            ScriptLookup::Read(_, script, ..) => Some((self.tool.name.value.as_str(), script)),
            ScriptLookup::Missing | ScriptLookup::Unreadable(..) => None,
        }
    }

    fn report(&mut self, load: &mut Load, reporter: &mut ScriptReporter) -> ScriptState {
        if self.is_clean
            && let ScriptLookup::Read(_, script, ..) = &self.lookup
        {
            return ScriptState::Ready(Arc::clone(script));
        }
        let finding_count =
            |load: &Load, reporter: &ScriptReporter| load.findings.len() + reporter.suppressed();
        let before = finding_count(load, reporter);
        let state = reporter.report(load, &self.tool, &self.root, &self.lookup, &self.unit.problems);
        self.is_clean = finding_count(load, reporter) == before && matches!(state, ScriptState::Ready(_));
        state
    }
}

fn script_of(tool: &Tool, root: &Path, file: &ScriptFile, unit: &Unit) -> Script {
    let parameter = |argument: &Argument| Parameter {
        name: argument.name.value.clone(),
        integer: argument.type_name() == Some("integer"),
    };
    let mut script = file.script.for_tool(&tool.name.value);
    script.parameters = tool.arguments.iter().map(parameter).collect();
    script.is_async = tool.is_async;
    script.timeout = tool.timeout;
    script.memory = tool.memory;
    script.permissions = resolve_permissions(tool, root);
    script.root = std::path::absolute(root).ok();
    script.modules = unit.modules();
    script
}

/// Returns whether both scripts behave the same.
pub(super) fn is_same_script(old: &Script, new: &Script) -> bool {
    let is_same_module = |(old, new): (&Arc<Module>, &Arc<Module>)| {
        Arc::ptr_eq(old, new) || (old.file == new.file && old.source == new.source)
    };
    old.source == new.source
        && old.file == new.file
        && old.parameters == new.parameters
        && old.is_async == new.is_async
        && old.timeout == new.timeout
        && old.memory == new.memory
        && old.permissions == new.permissions
        && old.root == new.root
        && old.modules.len() == new.modules.len()
        && old.modules.iter().zip(&*new.modules).all(is_same_module)
}

/// Returns the paths at which the script of a tool may be, in order of precedence.
pub(super) fn script_candidates(root: &Path, tool: &Tool) -> Vec<PathBuf> {
    match &tool.script {
        Some(path) => vec![root.join(&path.value)],
        None => {
            let scripts = scripts_folder(root);
            ["lua", "luau"].map(|extension| scripts.join(format!("{}.{extension}", tool.name.value))).to_vec()
        }
    }
}

pub(super) fn find_script(root: &Path, tool: &LoadedTool) -> Option<PathBuf> {
    script_candidates(root, &tool.tool).into_iter().find(|path| path.exists())
}

pub(super) fn resolve_permissions(tool: &Tool, root: &Path) -> ScriptPermissions {
    let resolve = |names: &[String]| names.iter().map(|name| PathGrant::new(name, root.join(name))).collect();
    let allow = &tool.permissions;
    ScriptPermissions {
        net: allow.net.clone(),
        read: resolve(&allow.read),
        write: resolve(&allow.write),
        run: allow.run.clone(),
        env: allow.env.clone(),
    }
}
