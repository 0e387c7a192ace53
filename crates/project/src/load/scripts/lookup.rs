//! Lookup of the script of a tool: its file, its modules and its contract.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::spec::{Argument, PathBase, Tool};
use deftool_script::{Parameter, PathGrant, Script, ScriptPermissions};

use super::file::{access_error, read_script, script_candidates};
use crate::load::cache::{Cache, key_of};
use crate::load::model::{CachedTool, ScriptLocation, ScriptLookup, Unit};
use crate::model::{Load, LoadedTool, is_same_script};

impl CachedTool {
    /// Looks up the script of a tool. Returns `previous` as its script if nothing changed.
    pub(super) fn look_up(
        cache: &Cache,
        loaded: &LoadedTool,
        root: &Arc<Path>,
        previous: Option<&Arc<Script>>,
        from: &Path,
    ) -> Self {
        let tool = &loaded.tool;
        let candidates = script_candidates(root, tool);
        let mut unit = Unit::default();
        let lookup = match ScriptLocation::among(&candidates, cache) {
            None => {
                let unreadable = |path: &PathBuf| {
                    let found = ScriptLocation { path: path.clone(), twin: None };
                    Some(ScriptLookup::Unreadable(found, access_error(path)?.to_string()))
                };
                let command = tool.command.as_ref().map(|command| {
                    let script =
                        bound(Script::of_command(&tool.name.value, command), tool, cache.base_of(tool, root));
                    let same = previous.filter(|previous| is_same_script(previous, &script));
                    ScriptLookup::Command(same.map_or_else(|| Arc::new(script), Arc::clone))
                });
                let unreadable = || candidates.iter().find_map(unreadable);
                command.or_else(unreadable).unwrap_or(ScriptLookup::Missing)
            }
            Some(found) => match read_script(cache, root, &found.path, from) {
                Err(error) => ScriptLookup::Unreadable(found, error.to_string()),
                Ok(file) => {
                    unit = Unit::of(cache, root, &found.path, &file, from);
                    let mut script =
                        bound(file.script.for_tool(&tool.name.value), tool, cache.base_of(tool, root));
                    script.modules = unit.modules();
                    script.linked = unit.linked_folders(&cache.linked_folders(root));
                    // Compiled here, where several threads work.
                    let contract = script.contract();
                    let is_same = |previous: &&Arc<Script>| {
                        is_same_script(previous, &script) && previous.contract() == contract
                    };
                    let same = previous.filter(is_same).map(Arc::clone);
                    ScriptLookup::Read(found, same.unwrap_or_else(|| Arc::new(script)))
                }
            },
        };
        let all = || candidates.iter().chain(unit.paths());
        cache.add_dependencies(all());
        let keys = all().map(|path| key_of(path)).collect();
        let external = all().filter(|path| !cache.snapshot().covers(path)).cloned().collect();
        let (definition, tool, root) = (Arc::clone(loaded.definition()), Arc::clone(tool), Arc::clone(root));
        Self { definition, tool, root, candidates, lookup, unit, external, keys, is_clean: false }
    }

    /// Returns whether the result depends on more than the files in `keys`: on similar names, or on an error of the file
    /// system.
    pub(crate) fn depends_on_other_files(&self) -> bool {
        self.unit.has_missing_modules() || matches!(self.lookup, ScriptLookup::Unreadable(..))
    }

    /// Returns whether a new lookup would have the same result.
    pub(super) fn is_current(&self, cache: &Cache, load: &Load, from: &Path) -> bool {
        if load.roots.get(&self.tool.source) != Some(&self.root) || self.depends_on_other_files() {
            return false;
        }
        if !cache.may_have_changed(&self.keys) {
            return true;
        }
        let is_found = match &self.lookup {
            ScriptLookup::Missing => ScriptLocation::among(&self.candidates, cache).is_none(),
            ScriptLookup::Unreadable(..) => false,
            ScriptLookup::Command(_) => true,
            ScriptLookup::Read(found, ..) => {
                let mut existing = self.candidates.iter().filter(|path| cache.stamp(path).is_some());
                existing.next() == Some(&found.path) && existing.next() == found.twin.as_ref()
            }
        };
        is_found && self.unit.is_current(cache, &self.root, from)
    }

    /// Returns the name of the tool and its script, if it was read.
    pub(super) fn named_script(&self) -> Option<(&str, &Arc<Script>)> {
        match &self.lookup {
            ScriptLookup::Read(_, script) | ScriptLookup::Command(script) => {
                Some((self.tool.name.value.as_str(), script))
            }
            ScriptLookup::Missing | ScriptLookup::Unreadable(..) => None,
        }
    }
}

impl Cache {
    /// Returns the folder that the relative paths of a tool of the project at `root` belong to.
    fn base_of<'f>(&'f self, tool: &Tool, root: &'f Path) -> &'f Path {
        match &self.user {
            Some(Ok(current)) if tool.base == PathBase::Project => current,
            Some(_) | None => root,
        }
    }
}

impl ScriptLocation {
    /// Returns the first existing path. `NAME.lua` comes before `NAME.luau`.
    fn among(candidates: &[PathBuf], cache: &Cache) -> Option<Self> {
        let mut existing = candidates.iter().filter(|path| cache.stamp(path).is_some());
        let path = existing.next()?.clone();
        Some(Self { path, twin: existing.next().cloned() })
    }
}

/// Sets what a script gets from its spec. `root`: the folder that its relative paths belong to.
fn bound(mut script: Script, tool: &Tool, root: &Path) -> Script {
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
    script
}

/// Returns the permissions of a tool of the project at `root`. A path that cannot be resolved on this machine is not
/// granted.
pub(crate) fn resolve_permissions(tool: &Tool, root: &Path) -> ScriptPermissions {
    let resolve =
        |names: &[String]| names.iter().filter_map(|name| PathGrant::of_spec(name, root).ok()).collect();
    let allow = &tool.permissions;
    ScriptPermissions {
        net: allow.net.clone(),
        read: resolve(&allow.read),
        write: resolve(&allow.write),
        run: allow.run.clone(),
        env: allow.env.clone(),
    }
}
