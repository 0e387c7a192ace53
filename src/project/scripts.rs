//! The script of each tool: found, compiled, held against its spec. Never run.
//!
//! Looking is done on all cores, telling (`script_findings`) in the order of the tools.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::read::display_name;
use super::script_findings::Teller;
use super::{Load, parallel};
use crate::script::{
    Contract, LoadProblem, MAX_SOURCE, Parameter, PathGrant, Permissions, Script, check_script,
};
use crate::spec::{Argument, Tool, ToolKind};

/// Looks for the scripts of every normal tool of `load`. Without a project there are none to look for.
/// In the projects of `whole`, files that no tool runs are told.
pub(super) fn load_scripts(load: &mut Load, whole: &HashSet<&Path>, from: &Path) {
    let files = Files::default();
    let examined = parallel::map(&load.tools, |_, loaded| {
        // A broken spec is told already; what its script lacks may follow from that.
        let is_wanted = loaded.tool.kind == ToolKind::Normal && loaded.tool.valid;
        let root = load.roots.get(&loaded.tool.source).filter(|_| is_wanted)?;
        Some((Arc::clone(root), Examined::of(&loaded.tool, root, &files, from)))
    });
    let mut teller = Teller::new(load, whole, from);
    let mut tools = std::mem::take(&mut load.tools);
    for (loaded, examined) in tools.iter_mut().zip(examined) {
        if let Some((root, examined)) = examined {
            loaded.script = teller.tell(load, &loaded.tool, &root, examined);
        }
    }
    load.tools = tools;
    teller.finish(load);
    load.sort_findings();
}

/// What was found where the script of a tool is looked for.
pub(super) enum Examined {
    /// Nothing.
    Missing,
    /// A file that cannot be read, and why.
    Unreadable(Found, String),
    /// A script, and what it returns or why it does not compile.
    Read(Found, Box<Script>, Result<Contract, LoadProblem>),
}

impl Examined {
    fn of(tool: &Tool, root: &Path, files: &Files, from: &Path) -> Self {
        let Some(found) = Found::of(tool, root) else { return Self::Missing };
        let file = match files.script(&found, from) {
            Ok(file) => file,
            Err(error) => return Self::Unreadable(found, error),
        };
        let mut script = file.for_tool(&tool.name.value);
        let parameter = |argument: &Argument| Parameter {
            name: argument.name.value.clone(),
            integer: argument.type_name() == Some("integer"),
        };
        script.parameters = tool.arguments.iter().map(parameter).collect();
        script.is_async = tool.is_async;
        script.timeout = tool.timeout;
        script.memory = tool.memory;
        script.permissions = resolve_permissions(tool, root);
        script.root = std::path::absolute(root).ok();
        let contract = check_script(&script);
        Self::Read(found, Box::new(script), contract)
    }
}

/// Where the script of a tool is.
pub(super) struct Found {
    pub(super) path: PathBuf,
    metadata: Metadata,
    /// Another place where it is, too.
    pub(super) twin: Option<PathBuf>,
}

impl Found {
    /// `NAME.lua` goes before `NAME.luau`.
    fn of(tool: &Tool, root: &Path) -> Option<Self> {
        let mut there = script_places(root, tool)
            .into_iter()
            .filter_map(|path| std::fs::metadata(&path).ok().map(|metadata| (path, metadata)));
        let (path, metadata) = there.next()?;
        Some(Self { path, metadata, twin: there.next().map(|(path, _)| path) })
    }
}

/// The script files of one load as scripts of no tool yet, or why they cannot be read. Several tools may name the same.
#[derive(Default)]
struct Files(Mutex<HashMap<PathBuf, Arc<OnceLock<ReadFile>>>>);

type ReadFile = Result<Script, String>;

impl Files {
    fn script(&self, found: &Found, from: &Path) -> ReadFile {
        let file = {
            let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(files.entry(found.path.clone()).or_default())
        };
        let read = || {
            let bytes = read_file(&found.path, &found.metadata).map_err(|error| error.to_string())?;
            Ok(Script::new("", display_name(&found.path, from), bytes))
        };
        file.get_or_init(read).as_ref().map(|script| script.for_tool("")).map_err(Clone::clone)
    }
}

/// The files that a change of which may change this load: the places where scripts are looked for.
pub(super) fn script_places(root: &Path, tool: &Tool) -> Vec<PathBuf> {
    match &tool.script {
        Some(path) => vec![root.join(&path.value)],
        None => {
            let scripts = root.join("scripts");
            ["lua", "luau"].map(|extension| scripts.join(format!("{}.{extension}", tool.name.value))).to_vec()
        }
    }
}

pub(super) fn find_script(root: &Path, tool: &Tool) -> Option<PathBuf> {
    Found::of(tool, root).map(|found| found.path)
}

/// At most one byte more than a script may have, so that a huge or endless file is refused by its length.
pub(super) fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    read_file(path, &std::fs::metadata(path)?)
}

fn read_file(path: &Path, metadata: &Metadata) -> std::io::Result<Vec<u8>> {
    if !metadata.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    let most = MAX_SOURCE as u64 + 1;
    let mut bytes = Vec::with_capacity(metadata.len().min(most) as usize);
    std::fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
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
