//! Limits of the permissions that a test may grant to the tools that it loads: a subset of their specs' permissions,
//! and access to the test's own folder.
//!
//! The resulting permissions are also checked against those that the project is trusted with
//! ([`TestSubject::authorize`](super::TestSubject)).

use std::path::{Path, PathBuf};

use mlua::{Table, Value as LuaValue};

use crate::error::{HostError, clean, type_name};
use crate::permission::{PathGrant, ScriptPermissions, normalize};

use super::fakes::Fake;

/// The grants that are allowed for one tool under test.
pub(super) struct GrantLimits<'b> {
    /// The tool's name.
    pub(super) name: &'b str,
    /// The test's folder, if it was created.
    pub(super) folder: Option<PathBuf>,
    /// The project's folder.
    pub(super) project: PathBuf,
    /// The permissions that the spec grants.
    pub(super) spec: &'b ScriptPermissions,
}

impl GrantLimits<'_> {
    fn is_in_folder(&self, path: &Path) -> bool {
        self.folder.as_ref().is_some_and(|folder| path.starts_with(folder))
    }

    /// Checks that the root of a tool is the project's folder or is in the test's folder.
    pub(super) fn check_root(&self, root: &Path) -> mlua::Result<()> {
        let root = normalize(root);
        if self.is_in_folder(&root) || root == normalize(&self.project) {
            return Ok(());
        }
        let shown = clean(&root.to_string_lossy(), 200);
        let message = format!("tool.load: `root` must be temp_dir() or a folder in it, got `{shown}`");
        Err(HostError::script(message))
    }

    fn may_grant(&self, path: &Path, spec: &[PathGrant]) -> bool {
        self.is_in_folder(path) || spec.iter().any(|grant| path.starts_with(normalize(&grant.path)))
    }

    /// Replaces the permissions of the spec with the lists in `grants`. Paths are relative to `root`.
    pub(super) fn replace(
        &self,
        permissions: &mut ScriptPermissions,
        grants: &Table,
        root: &Path,
    ) -> mlua::Result<()> {
        grants.for_each(|key: String, list: LuaValue| {
            let names = names(&key, &list)?;
            let words = |spec: &[String]| match names.iter().find(|name| !spec.contains(name)) {
                Some(name) => Err(self.not_granted(&key, name)),
                None => Ok(names.clone()),
            };
            let paths = |spec: &[PathGrant]| {
                let grant = |name: &String| {
                    let resolved = PathGrant::of_spec(name, root);
                    let grant = resolved.map_err(|why| HostError::script(format!("tool.load: {why}")))?;
                    if self.may_grant(&grant.path, spec) {
                        Ok(grant)
                    } else {
                        Err(self.not_granted(&key, name))
                    }
                };
                names.iter().map(grant).collect::<mlua::Result<Vec<PathGrant>>>()
            };
            match key.as_str() {
                "read" => permissions.read = paths(&self.spec.read)?,
                "write" => permissions.write = paths(&self.spec.write)?,
                "net" => permissions.net = words(&self.spec.net)?,
                "run" => permissions.run = words(&self.spec.run)?,
                "env" => permissions.env = words(&self.spec.env)?,
                _ => {
                    let key = clean(&key, 60);
                    let message =
                        format!("tool.load: unknown grant `{key}`, expected net, read, write, run or env");
                    return Err(HostError::script(message));
                }
            }
            Ok(())
        })
    }

    /// Returns the permissions with access outside of the test: without those of faked tables and those of the test's
    /// folder.
    pub(super) fn external_permissions(
        &self,
        permissions: &ScriptPermissions,
        fakes: &[Fake],
    ) -> ScriptPermissions {
        let is_real = |table: &str| !fakes.iter().any(|fake| fake.table == table);
        let words = |table: &str, list: &[String]| if is_real(table) { list.to_vec() } else { Vec::new() };
        let paths = |list: &[PathGrant]| {
            let outside = list.iter().filter(|grant| is_real("fs") && !self.is_in_folder(&grant.path));
            outside.cloned().collect()
        };
        // Programs receive the variables too.
        let are_passed = !permissions.run.is_empty() && is_real("process");
        let env = if are_passed { permissions.env.clone() } else { words("env", &permissions.env) };
        ScriptPermissions {
            net: words("http", &permissions.net),
            read: paths(&permissions.read),
            write: paths(&permissions.write),
            run: words("process", &permissions.run),
            env,
        }
    }

    fn not_granted(&self, key: &str, name: &str) -> mlua::Error {
        let (tool, name) = (self.name, clean(name, 200));
        HostError::script(format!(
            "tool.load: cannot grant `{name}` under `{key}`: it is neither allowed by the spec of `{tool}` nor in \
             temp_dir()"
        ))
    }
}

fn names(key: &str, list: &LuaValue) -> mlua::Result<Vec<String>> {
    let wrong = |got: &LuaValue| {
        let (key, got) = (clean(key, 60), type_name(got));
        HostError::script(format!("tool.load: expected a list of strings for the grant `{key}`, got a {got}"))
    };
    let LuaValue::Table(list) = list else { return Err(wrong(list)) };
    let mut names = Vec::new();
    for name in list.sequence_values::<LuaValue>() {
        match name? {
            LuaValue::String(name) => names.push(name.to_string_lossy()),
            other => return Err(wrong(&other)),
        }
    }
    Ok(names)
}
