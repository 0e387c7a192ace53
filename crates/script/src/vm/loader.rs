//! `require` at run time. A module's top level runs once per call, in its own environment, when the module is first
//! required. Its return value is used for the rest of the call.
//!
//! Only the modules that belong to the script can be loaded. The prelude calls `begin`, runs the returned function and
//! passes its result to `finish`, so that a module can wait and fail like any other function.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use deftool_lang::tool::ToolErrorKind;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue};

use crate::error::{self, HostError, clean, type_name};
use crate::script::module::{MAX_MODULES, Module, module_path};

/// The modules of one Lua state.
pub(crate) struct Loader {
    modules: Arc<[Arc<Module>]>,
    /// The metatable of every environment.
    globals_metatable: Table,
    /// The loaded chunks, by path. Each call runs clones of them.
    templates: RefCell<HashMap<String, Function>>,
    /// The modules that the running call has loaded.
    loaded: RefCell<HashMap<String, Loaded>>,
}

enum Loaded {
    /// The module's top level is running or has failed.
    Loading,
    Value(LuaValue),
}

impl Loader {
    pub(crate) fn new(modules: Arc<[Arc<Module>]>, globals_metatable: Table) -> Self {
        Self { modules, globals_metatable, templates: RefCell::default(), loaded: RefCell::default() }
    }

    /// Removes the modules that the call loaded.
    pub(crate) fn end(&self) {
        self.loaded.borrow_mut().clear();
    }

    /// Returns the functions `begin` and `finish`, which implement the prelude's `require`.
    pub(crate) fn functions(
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

    /// Returns the module with this path. There are at most [`MAX_MODULES`].
    fn module(&self, path: &str) -> Option<&Arc<Module>> {
        self.modules.iter().find(|module| module.path() == path)
    }

    /// Resolves `wanted` relative to the innermost of the script's own files.
    fn find(&self, lua: &Lua, files: &[String], wanted: &str) -> mlua::Result<String> {
        let location = error::location(lua, files);
        let file = location.split(':').next().unwrap_or_default();
        let shown = clean(wanted, 100);
        let path = module_path(file, wanted)
            .map_err(|advice| HostError::script(format!("require: `{shown}`: {advice}")))?;
        if self.module(&path).is_none() {
            let why = if self.modules.len() < MAX_MODULES {
                String::from("only files in scripts/lib that are required by a literal path can be loaded")
            } else {
                format!("it has the maximum of {MAX_MODULES} modules")
            };
            return Err(HostError::script(format!("require: unknown module `{shown}`; {why}")));
        }
        Ok(path)
    }

    /// Returns `true` and the module's value, or `false` and the top level to run. The last value is the module's path.
    fn begin(&self, lua: &Lua, path: String) -> mlua::Result<(bool, LuaValue, String)> {
        match self.loaded.borrow().get(&path) {
            Some(Loaded::Value(value)) => return Ok((true, value.clone(), path)),
            Some(Loaded::Loading) => {
                return Err(HostError::script(format!(
                    "require: {path} failed to load or is still loading (circular dependency)"
                )));
            }
            None => {}
        }
        let template = self.template(lua, &path)?;
        let environment = lua.create_table()?;
        environment.set_metatable(Some(self.globals_metatable.clone()))?;
        environment.set_safeenv(true);
        let chunk = template.deep_clone()?;
        chunk.set_environment(environment)?;
        self.loaded.borrow_mut().insert(path.clone(), Loaded::Loading);
        Ok((false, LuaValue::Function(chunk), path))
    }

    fn template(&self, lua: &Lua, path: &str) -> mlua::Result<Function> {
        if let Some(template) = self.templates.borrow().get(path) {
            return Ok(template.clone());
        }
        let Some(module) = self.module(path) else {
            return Err(HostError::lua(ToolErrorKind::Internal, format!("unknown module `{path}`")));
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
