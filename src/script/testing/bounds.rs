//! What a test may grant to the tools that it loads: less than their specs allow, or what lies in its own folder.
//!
//! What is held against the spec here is held against what the project is trusted with, too
//! ([`TestSubject::permit`](super::TestSubject)): whoever runs tests has agreed to no more than that.

use std::path::{Path, PathBuf};

use mlua::{Table, Value as LuaValue};

use crate::script::convert::type_name;
use crate::script::error::{HostError, clean};
use crate::script::permission::{PathGrant, Permissions, plain};

use super::fakes::Fake;

/// Of one tool under test.
pub(super) struct Bounds<'b> {
    /// The tool.
    pub(super) name: &'b str,
    /// The test's folder, if it has asked for one.
    pub(super) folder: Option<PathBuf>,
    /// The project's folder.
    pub(super) project: PathBuf,
    /// What the spec allows.
    pub(super) spec: &'b Permissions,
}

impl Bounds<'_> {
    fn is_in_folder(&self, path: &Path) -> bool {
        self.folder.as_ref().is_some_and(|folder| path.starts_with(folder))
    }

    /// The project that a tool is put into is the test's own.
    pub(super) fn check_root(&self, root: &Path) -> mlua::Result<()> {
        let root = plain(root);
        if self.is_in_folder(&root) || root == plain(&self.project) {
            return Ok(());
        }
        let shown = clean(&root.to_string_lossy(), 200);
        let message =
            format!("tool.load: the root of a tool under test is temp_dir() or beneath it; {shown} is not");
        Err(HostError::script(message))
    }

    fn may_grant(&self, path: &Path, spec: &[PathGrant]) -> bool {
        self.is_in_folder(path) || spec.iter().any(|grant| path.starts_with(plain(&grant.path)))
    }

    /// Takes the lists of `grants` in the place of what the spec allows; paths are relative to `root`.
    pub(super) fn replace(
        &self,
        permissions: &mut Permissions,
        grants: &Table,
        root: &Path,
    ) -> mlua::Result<()> {
        grants.for_each(|key: String, list: LuaValue| {
            let names = names(&key, &list)?;
            let words = |spec: &[String]| match names.iter().find(|name| !spec.contains(name)) {
                Some(name) => Err(self.beyond(&key, name)),
                None => Ok(names.clone()),
            };
            let paths = |spec: &[PathGrant]| {
                let grant = |name: &String| {
                    let grant = PathGrant::new(name, root.join(name));
                    if self.may_grant(&grant.path, spec) { Ok(grant) } else { Err(self.beyond(&key, name)) }
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
                        format!("tool.load: unknown grant `{key}`; there are: net, read, write, run, env");
                    return Err(HostError::script(message));
                }
            }
            Ok(())
        })
    }

    /// What of `permissions` reaches beyond the test: not what `fakes` stand in for, and not its own folder.
    pub(super) fn left_real(&self, permissions: &Permissions, fakes: &[Fake]) -> Permissions {
        let is_real = |table: &str| !fakes.iter().any(|fake| fake.table == table);
        let words = |table: &str, list: &[String]| if is_real(table) { list.to_vec() } else { Vec::new() };
        let paths = |list: &[PathGrant]| {
            let outside = list.iter().filter(|grant| is_real("fs") && !self.is_in_folder(&grant.path));
            outside.cloned().collect()
        };
        // A program gets them, too.
        let are_passed = !permissions.run.is_empty() && is_real("process");
        let env = if are_passed { permissions.env.clone() } else { words("env", &permissions.env) };
        Permissions {
            net: words("http", &permissions.net),
            read: paths(&permissions.read),
            write: paths(&permissions.write),
            run: words("process", &permissions.run),
            env,
        }
    }

    fn beyond(&self, key: &str, name: &str) -> mlua::Error {
        let (tool, name) = (self.name, clean(name, 200));
        HostError::script(format!(
            "tool.load: a test grants what the spec of `{tool}` allows, or what is in temp_dir(); `{name}` under \
             `{key}` is neither"
        ))
    }
}

fn names(key: &str, list: &LuaValue) -> mlua::Result<Vec<String>> {
    let wrong = |got: &LuaValue| {
        let (key, got) = (clean(key, 60), type_name(got));
        HostError::script(format!("tool.load: expected a list of strings as the grant `{key}`, got a {got}"))
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
