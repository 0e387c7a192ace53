//! `require` at run time: a module's top level runs once per call, in an environment of its own, when it is first
//! asked for; what it returned serves the rest of the call.
//!
//! Only the modules that came with the script can be loaded. The prelude calls [`Loader::begin`], runs what it gets
//! and hands the result to [`Loader::finish`], so that a module may wait and fail like any other function.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue};

use super::convert::type_name;
use super::error::{self, HostError, clean};
use super::module::{MAX_MODULES, Module, module_path};
use crate::tool::ToolErrorKind;

/// The modules of one state.
pub(super) struct Loader {
    modules: Arc<[Arc<Module>]>,
    /// The metatable of every environment.
    over_globals: Table,
    /// The loaded chunks, by path; each call runs clones of them.
    templates: RefCell<HashMap<String, Function>>,
    /// Of the call that runs.
    loaded: RefCell<HashMap<String, Loaded>>,
}

enum Loaded {
    /// Its top level runs, or ended in an error.
    Begun,
    Value(LuaValue),
}

impl Loader {
    pub(super) fn new(modules: Arc<[Arc<Module>]>, over_globals: Table) -> Self {
        Self { modules, over_globals, templates: RefCell::default(), loaded: RefCell::default() }
    }

    /// Forgets what the call loaded.
    pub(super) fn end(&self) {
        self.loaded.borrow_mut().clear();
    }

    /// The two functions that the prelude's `require` is made of.
    pub(super) fn functions(
        self: &Rc<Self>,
        lua: &Lua,
        files: Rc<[String]>,
    ) -> mlua::Result<(Function, Function)> {
        let loader = Rc::clone(self);
        let begin = lua.create_function(move |lua, arguments: MultiValue| {
            let path = match arguments.front() {
                Some(LuaValue::String(wanted)) => loader.find(lua, &files, &wanted.to_string_lossy())?,
                other => {
                    let got = other.map_or("nothing", type_name);
                    return Err(HostError::script(format!("require: expected a literal path, got {got}")));
                }
            };
            loader.begin(lua, path)
        })?;
        let loader = Rc::clone(self);
        let finish = lua.create_function(move |_, (path, value): (String, LuaValue)| {
            if value.is_nil() {
                let file = loader.module(&path).map_or(path.as_str(), |module| module.file.as_str());
                return Err(HostError::script(format!("{file}: a module must return a value")));
            }
            loader.loaded.borrow_mut().insert(path, Loaded::Value(value.clone()));
            Ok(value)
        })?;
        Ok((begin, finish))
    }

    /// Looked for among [`MAX_MODULES`] at most.
    fn module(&self, path: &str) -> Option<&Arc<Module>> {
        self.modules.iter().find(|module| module.path() == path)
    }

    /// The path of the module that the innermost of the script's own files means by `wanted`.
    fn find(&self, lua: &Lua, files: &[String], wanted: &str) -> mlua::Result<String> {
        let place = error::place(lua, files);
        let file = place.split(':').next().unwrap_or_default();
        let shown = clean(wanted, 100);
        let path = module_path(file, wanted)
            .map_err(|advice| HostError::script(format!("require: `{shown}`: {advice}")))?;
        if self.module(&path).is_none() {
            let why = if self.modules.len() < MAX_MODULES {
                String::from("only files of scripts/lib that a script requires by a literal path are")
            } else {
                format!("it has {MAX_MODULES} modules, and no script has more")
            };
            return Err(HostError::script(format!(
                "require: `{shown}` was not loaded with the script; {why}"
            )));
        }
        Ok(path)
    }

    /// `true` and what the module returned, or `false`, its top level to run, and its path.
    fn begin(&self, lua: &Lua, path: String) -> mlua::Result<(bool, LuaValue, String)> {
        match self.loaded.borrow().get(&path) {
            Some(Loaded::Value(value)) => return Ok((true, value.clone(), path)),
            Some(Loaded::Begun) => {
                return Err(HostError::script(format!(
                    "require: {path} is being loaded already (modules that require each other), or failed to load"
                )));
            }
            None => {}
        }
        let template = self.template(lua, &path)?;
        let environment = lua.create_table()?;
        environment.set_metatable(Some(self.over_globals.clone()))?;
        environment.set_safeenv(true);
        let chunk = template.deep_clone()?;
        chunk.set_environment(environment)?;
        self.loaded.borrow_mut().insert(path.clone(), Loaded::Begun);
        Ok((false, LuaValue::Function(chunk), path))
    }

    fn template(&self, lua: &Lua, path: &str) -> mlua::Result<Function> {
        if let Some(template) = self.templates.borrow().get(path) {
            return Ok(template.clone());
        }
        let Some(module) = self.module(path) else {
            return Err(HostError::lua(ToolErrorKind::Internal, format!("{path} was not loaded")));
        };
        let bytecode =
            module.compiled().map_err(|problem| HostError::lua(ToolErrorKind::Load, problem.to_string()))?;
        let template = lua
            .load(&*bytecode)
            .set_name(format!("={}", module.file))
            .set_mode(ChunkMode::Binary)
            .into_function()?;
        self.templates.borrow_mut().insert(path.to_owned(), template.clone());
        Ok(template)
    }
}
