//! The script of each tool: found, compiled with the modules that it requires, held against its spec. Never run.
//!
//! Looking is done on all cores, telling (`script_findings`) in the order of the tools. A tool whose spec, script and
//! modules are those of the load before it is not looked at anew and keeps its `Arc<Script>`: the states of a script
//! belong to that.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::cache::{Cache, MOST_OF_SCRIPT, OfBytes, key_of};
use super::discover::scripts_folder;
use super::modules::Unit;
use super::outside::refuse_outside;
use super::read::display_name;
use super::script_findings::Teller;
use super::{Load, LoadedTool, ScriptState, parallel};
use crate::script::{
    Contract, LoadProblem, Module, Parameter, PathGrant, Permissions, Require, Script, check_script, required,
};
use crate::spec::{Argument, Tool, ToolKind};

/// Looks for the scripts of every normal tool of `load`. Without a project there are none to look for.
/// In the projects of `whole`, files that no tool runs are told.
pub(super) fn load_scripts(cache: &mut Cache, load: &mut Load, whole: &HashSet<&Path>, from: &Path) {
    let roots: HashSet<&Path> = load.roots.values().map(AsRef::as_ref).collect();
    for root in roots.into_iter().chain(whole.iter().copied()) {
        cache.look_at_scripts(root);
    }
    let mut former = std::mem::take(&mut cache.tools);
    let mut known = Vec::with_capacity(load.tools.len());
    let mut unknown = Vec::new();
    for (index, loaded) in load.tools.iter().enumerate() {
        let kept = former.remove(&address(&loaded.tool));
        let is_current = kept.as_ref().is_some_and(|kept| kept.is_current(cache, load, from));
        // A broken spec is told already; what its script lacks may follow from that.
        let is_wanted = loaded.tool.kind == ToolKind::Normal && loaded.tool.valid;
        let root = load.roots.get(&loaded.tool.source).filter(|_| is_wanted);
        if let Some(root) = root.filter(|_| !is_current) {
            unknown.push((index, &loaded.tool, root));
        }
        match kept {
            Some(kept) if is_current => known.push(Some(kept)),
            Some(kept) => {
                former.insert(address(&loaded.tool), kept);
                known.push(None);
            }
            None => known.push(None),
        }
    }
    // Spec and script are one: the spec is still to be as it was.
    cache.rely_on(unknown.iter().filter_map(|(_, tool, _)| load.files.get(&tool.source)));
    let former: HashMap<&str, &Arc<Script>> = former.values().filter_map(KeptTool::named_script).collect();
    let examined = parallel::map(&unknown, |_, (_, tool, root)| {
        let former = former.get(tool.name.value.as_str()).copied();
        KeptTool::examine(cache, tool, root, former, from)
    });
    for ((index, ..), examined) in unknown.into_iter().zip(examined) {
        if let Some(place) = known.get_mut(index) {
            *place = Some(examined);
        }
    }
    let mut teller = Teller::new(load, &known, whole, cache.looks(), from);
    let mut tools = std::mem::take(&mut load.tools);
    for (loaded, kept) in tools.iter_mut().zip(known) {
        let Some(mut kept) = kept else { continue };
        loaded.script = kept.tell(load, &mut teller);
        cache.tools.insert(address(&loaded.tool), kept);
    }
    load.tools = tools;
    teller.finish(cache, load);
    load.sort_findings();
}

/// What a tool is known by from load to load: whoever keeps something under it holds the tool, too.
fn address(tool: &Arc<Tool>) -> usize {
    Arc::as_ptr(tool).addr()
}

/// The file of a script or module, as one of no tool yet.
pub(super) struct ScriptFile {
    pub(super) script: Script,
    pub(super) requires: Vec<Require>,
    module: OnceLock<Arc<Module>>,
}

impl OfBytes for ScriptFile {
    const MOST: u64 = MOST_OF_SCRIPT;

    fn holds(&self, bytes: &[u8]) -> bool {
        *self.script.source == *bytes
    }
}

impl ScriptFile {
    /// The file as a module, compiled once.
    pub(super) fn module(&self) -> &Arc<Module> {
        self.module.get_or_init(|| Arc::new(Module::new(self.script.file.clone(), &self.script.source)))
    }
}

/// Reads the file of a script or module of the project at `root`.
///
/// # Errors
/// Why it cannot be read; that it lies elsewhere.
pub(super) fn read_script(
    cache: &Cache,
    root: &Path,
    path: &Path,
    from: &Path,
) -> std::io::Result<Arc<ScriptFile>> {
    refuse_outside(root, path)?;
    let make = |bytes: Vec<u8>| ScriptFile {
        requires: required(&bytes),
        script: Script::new("", display_name(path, from), bytes),
        module: OnceLock::new(),
    };
    cache.read(&cache.scripts, path, |_| true, make)
}

/// What was found where the script of a tool is looked for.
pub(super) enum Examined {
    /// Nothing.
    Missing,
    /// A file that cannot be read, and why.
    Unreadable(Found, String),
    /// A script, and what it returns or why it does not compile.
    Read(Found, Arc<Script>, Result<Contract, LoadProblem>),
}

/// Where the script of a tool is.
#[derive(PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// Another place where it is, too.
    pub(super) twin: Option<PathBuf>,
}

impl Found {
    /// `NAME.lua` goes before `NAME.luau`.
    fn among(places: &[PathBuf], cache: &Cache) -> Option<Self> {
        let mut there = places.iter().filter(|path| cache.look(path).is_some());
        let path = there.next()?.clone();
        Some(Self { path, twin: there.next().cloned() })
    }
}

/// Why it cannot be said that there is nothing at `path`, where nothing was found: a folder that may not be read, links in
/// a circle.
pub(super) fn what_hides(path: &Path) -> Option<std::io::Error> {
    let error = std::fs::metadata(path).err()?;
    let is_absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    (!is_absent).then_some(error)
}

/// A tool whose script was looked for, and all that this came from.
pub(super) struct KeptTool {
    tool: Arc<Tool>,
    root: Arc<Path>,
    /// Where its script was looked for.
    pub(super) places: Vec<PathBuf>,
    examined: Examined,
    /// The files of its script and of the modules.
    unit: Unit,
    /// The places among all these outside of the folders that are looked through.
    pub(super) elsewhere: Vec<PathBuf>,
    /// All places that have a say in this.
    keys: Vec<u64>,
    /// Whether there is nothing to tell of it, whatever is told of others.
    is_clean: bool,
}

impl KeptTool {
    fn examine(
        cache: &Cache,
        tool: &Arc<Tool>,
        root: &Arc<Path>,
        former: Option<&Arc<Script>>,
        from: &Path,
    ) -> Self {
        let places = script_places(root, tool);
        let mut unit = Unit::default();
        let examined = match Found::among(&places, cache) {
            None => {
                let hidden = |path: &PathBuf| {
                    let found = Found { path: path.clone(), twin: None };
                    Some(Examined::Unreadable(found, what_hides(path)?.to_string()))
                };
                places.iter().find_map(hidden).unwrap_or(Examined::Missing)
            }
            Some(found) => match read_script(cache, root, &found.path, from) {
                Err(error) => Examined::Unreadable(found, error.to_string()),
                Ok(file) => {
                    unit = Unit::of(cache, root, &found.path, &file, from);
                    let script = script_of(tool, root, &file, &unit);
                    let contract = check_script(&script);
                    let same = former.filter(|former| is_same_script(former, &script));
                    let script = same.map_or_else(|| Arc::new(script), Arc::clone);
                    Examined::Read(found, script, contract)
                }
            },
        };
        let all = || places.iter().chain(unit.places());
        cache.rely_on(all());
        let keys = all().map(|path| key_of(path)).collect();
        let elsewhere = all().filter(|path| !cache.looks().covers(path)).cloned().collect();
        let (tool, root) = (Arc::clone(tool), Arc::clone(root));
        Self { tool, root, places, examined, unit, elsewhere, keys, is_clean: false }
    }

    /// Whether a look at it would find the same.
    fn is_current(&self, cache: &Cache, load: &Load, from: &Path) -> bool {
        if load.roots.get(&self.tool.source) != Some(&self.root) || self.unit.lacks_something() {
            return false;
        }
        if !cache.may_have_changed(&self.keys) {
            return !matches!(self.examined, Examined::Unreadable(..));
        }
        let is_found = match &self.examined {
            Examined::Missing => Found::among(&self.places, cache).is_none(),
            Examined::Unreadable(..) => false,
            Examined::Read(found, ..) => {
                let mut there = self.places.iter().filter(|path| cache.look(path).is_some());
                there.next() == Some(&found.path) && there.next() == found.twin.as_ref()
            }
        };
        is_found && self.unit.is_current(cache, &self.root, from)
    }

    fn named_script(&self) -> Option<(&str, &Arc<Script>)> {
        match &self.examined {
            Examined::Read(_, script, ..) => Some((self.tool.name.value.as_str(), script)),
            Examined::Missing | Examined::Unreadable(..) => None,
        }
    }

    fn tell(&mut self, load: &mut Load, teller: &mut Teller) -> ScriptState {
        if self.is_clean
            && let Examined::Read(_, script, ..) = &self.examined
        {
            return ScriptState::Ready(Arc::clone(script));
        }
        let said = |load: &Load, teller: &Teller| load.findings.len() + teller.withheld();
        let before = said(load, teller);
        let state = teller.tell(load, &self.tool, &self.root, &self.examined, &self.unit.problems);
        self.is_clean = said(load, teller) == before && matches!(state, ScriptState::Ready(_));
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

/// Whether a call of either would do the same.
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

/// Where the script of a tool is looked for, in order.
pub(super) fn script_places(root: &Path, tool: &Tool) -> Vec<PathBuf> {
    match &tool.script {
        Some(path) => vec![root.join(&path.value)],
        None => {
            let scripts = scripts_folder(root);
            ["lua", "luau"].map(|extension| scripts.join(format!("{}.{extension}", tool.name.value))).to_vec()
        }
    }
}

pub(super) fn find_script(root: &Path, tool: &LoadedTool) -> Option<PathBuf> {
    script_places(root, &tool.tool).into_iter().find(|path| path.exists())
}

pub(super) fn resolve_permissions(tool: &Tool, root: &Path) -> Permissions {
    let resolve = |names: &[String]| names.iter().map(|name| PathGrant::new(name, root.join(name))).collect();
    let allow = &tool.permissions;
    Permissions {
        net: allow.net.clone(),
        read: resolve(&allow.read),
        write: resolve(&allow.write),
        run: allow.run.clone(),
        env: allow.env.clone(),
    }
}
