//! The Rust part of the test functions, and the state of a running test.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use deftool_lang::schema::ToolEntry;
use deftool_lang::tool::{CallContext, ToolError, ToolErrorKind, check_result};
use mlua::chunk::{ChunkMode, Compiler};
use mlua::{Function, Lua, LuaString, MultiValue, Table, Value as LuaValue};
use serde_json::{Map, Value};

use super::command;
use super::difference;
use super::fakes::{self, Fake, FakeOwner, LuaState};
use super::grant_limits::GrantLimits;
use super::model::{Authorize, TestFailure, TestFile, TestName, TestSubject, TestTools, Validate};
use super::temp::TempFolder;
use crate::control::Control;
use crate::convert::{self, BigIntegers};
use crate::error::{self, HostError, clean, type_name};
use crate::events::ScriptSink;
use crate::host::{Host, Marks, Phase, host_tables};
use crate::limits::{DEFAULT_MEMORY, DEFAULT_TIMEOUT};
use crate::permission::PathGrant;
use crate::runner::local::limit;
use crate::script::Script;
use crate::vm::Vm;

/// Maximum number of tests per file.
const MAX_TESTS: usize = 10_000;
/// Maximum length of a test name, in characters.
const MAX_NAME: usize = 200;
/// Maximum number of nested tool calls. A fake may call the tool that calls it: each call has its own state and uses
/// the same stack.
const MAX_CALLS: usize = 32;

static TEST_LIBRARY: LazyLock<Result<Vec<u8>, String>> =
    LazyLock::new(|| Compiler::new().compile(include_str!("testing.lua")).map_err(|error| error.to_string()));

/// The state of a running test file.
pub(super) struct TestState {
    /// The tests that the top level has registered.
    pub(super) names: RefCell<Vec<TestName>>,
    /// The first expectation that failed.
    pub(super) failure: RefCell<Option<TestFailure>>,
    /// The names of the tools that were called.
    pub(super) called: RefCell<BTreeSet<String>>,
    /// The locations of `expect` calls without a matcher call, by token.
    expectations: RefCell<BTreeMap<u64, String>>,
    next_expectation: Cell<u64>,
    /// The error of the last tool call, without a location, which `fails` returns.
    last_error: RefCell<Option<ToolError>>,
    folder: RefCell<Option<TempFolder>>,
    /// Number of active tool calls.
    calls: Cell<usize>,
    /// The index of the test to run. `None`: only list the tests.
    selected: Option<usize>,
    tools: TestTools,
    root: Option<PathBuf>,
    file: String,
    sink: ScriptSink,
}

impl TestState {
    pub(super) fn new(file: &TestFile, selected: Option<usize>, sink: ScriptSink) -> Self {
        Self {
            names: RefCell::default(),
            failure: RefCell::default(),
            called: RefCell::default(),
            expectations: RefCell::default(),
            next_expectation: Cell::new(0),
            last_error: RefCell::default(),
            folder: RefCell::default(),
            calls: Cell::new(0),
            selected,
            tools: Arc::clone(&file.tools),
            root: file.script.root.clone(),
            file: file.script.file.clone(),
            sink,
        }
    }

    /// Returns the failure of a test that called `expect` without a matcher.
    pub(super) fn unused_expectation(&self) -> Option<TestFailure> {
        let expectations = self.expectations.borrow();
        let location = expectations.values().next()?;
        let line = fakes::split_location(location, &self.file).map(|(line, _)| line);
        let message = String::from(
            "expect(…) without a matcher checks nothing; add one, as in expect(value).equals(3)",
        );
        Some(TestFailure { kind: "expectation", line, message, details: Vec::new() })
    }

    /// Fails the test. The first of `lines` is the message, the others are details. Returns the error to raise.
    fn fail(&self, lua: &Lua, host: &Host, mut lines: Vec<String>) -> mlua::Error {
        let location = error::location(lua, &host.files);
        let line = fakes::split_location(&location, &self.file).map(|(line, _)| line);
        let message = if lines.is_empty() { String::from("the test failed") } else { lines.remove(0) };
        let raised = HostError::script(message.clone());
        let details = if line.is_none() && !location.is_empty() {
            std::iter::once(format!("at {}", location.trim_end_matches(": "))).chain(lines).collect()
        } else {
            lines
        };
        let failure = TestFailure { kind: "expectation", line, message, details };
        self.failure.borrow_mut().get_or_insert(failure);
        raised
    }

    fn with_folder<T>(
        &self,
        host: &Host,
        function: &str,
        work: impl FnOnce(&TempFolder) -> Result<T, String>,
    ) -> mlua::Result<T> {
        let failed = |error: String| HostError::script(format!("{function}: {error}"));
        if host.phase.get() != Phase::Function {
            return Err(failed(String::from("only available inside a test: each test has its own folder")));
        }
        let mut folder = self.folder.borrow_mut();
        if folder.is_none() {
            *folder = Some(TempFolder::new().map_err(failed)?);
        }
        match &*folder {
            Some(folder) => work(folder).map_err(failed),
            None => Err(failed(String::from("the folder is missing"))),
        }
    }
}

/// Adds the test functions to the globals of `lua`, which is not sealed yet.
pub(super) fn install(state: &Rc<TestState>, lua: &Lua, host: &Rc<Host>, marks: &Marks) -> mlua::Result<()> {
    let bytecode = TEST_LIBRARY.as_ref().map_err(mlua::Error::runtime)?;
    let globals = lua.globals();
    // The function to run until the selected test is registered.
    let (is_listing, message) = (state.selected.is_none(), "the top level did not register this test again");
    let unregistered = move |_: &Lua, ()| if is_listing { Ok(()) } else { Err(HostError::script(message)) };
    host.entry.replace(Some(lua.create_function(unregistered)?));

    let functions = lua.create_table()?;
    functions.raw_set("guard", &marks.guard)?;
    add_matchers(&functions, state, lua, host, marks)?;
    add_registration(&functions, state, lua, host)?;
    add_tool_loading(&functions, state, lua, host, marks)?;
    let tool: Table = globals.raw_get("tool")?;
    tool.set_readonly(false);
    functions.raw_set("tool", &tool)?;
    lua.load(bytecode)
        .set_name(format!("={}", error::PRELUDE_NAME))
        .set_mode(ChunkMode::Binary)
        .call::<()>(functions)?;
    tool.set_readonly(true);
    let temp = temp_table(state, lua, host)?;
    temp.set_readonly(true);
    globals.raw_set("temp", temp)?;
    let (state, host) = (Rc::clone(state), Rc::clone(host));
    let folder = move |_: &Lua, ()| {
        state.with_folder(&host, "temp_dir", |folder| Ok(folder.path().to_string_lossy().into_owned()))
    };
    globals.raw_set("temp_dir", lua.create_function(folder)?)
}

fn add_matchers(
    functions: &Table,
    state: &Rc<TestState>,
    lua: &Lua,
    host: &Rc<Host>,
    marks: &Marks,
) -> mlua::Result<()> {
    let array = marks.array.clone();
    functions.raw_set(
        "differences",
        lua.create_function(move |_, (got, expected): (LuaValue, LuaValue)| {
            let found = difference::differences(&got, &expected, &array);
            Ok(if found.is_empty() { None } else { Some(found) })
        })?,
    )?;
    functions.raw_set(
        "contains",
        lua.create_function(|_, (value, part): (LuaValue, LuaValue)| {
            let found = difference::contains(&value, &part);
            found.ok_or_else(|| HostError::script("expect(…).contains: the values are too large to compare"))
        })?,
    )?;
    let array = marks.array.clone();
    let show = move |_: &Lua, value: LuaValue| Ok(difference::show(&value, &array));
    functions.raw_set("show", lua.create_function(show)?)?;
    let (shared, shared_host) = (Rc::clone(state), Rc::clone(host));
    functions.raw_set(
        "fail",
        lua.create_function(move |lua, message: LuaValue| {
            let lines = match &message {
                LuaValue::Table(lines) => lines.sequence_values::<String>().flatten().collect(),
                other => vec![error::describe(other)],
            };
            Err::<(), _>(shared.fail(lua, &shared_host, lines))
        })?,
    )?;
    functions.raw_set(
        "misuse",
        lua.create_function(|_, message: LuaString| {
            Err::<(), _>(HostError::script(clean(&message.to_string_lossy(), 500)))
        })?,
    )?;
    let (shared, shared_host) = (Rc::clone(state), Rc::clone(host));
    functions.raw_set(
        "new_expectation",
        lua.create_function(move |lua, ()| {
            let token = shared.next_expectation.get();
            shared.next_expectation.set(token + 1);
            shared.expectations.borrow_mut().insert(token, error::location(lua, &shared_host.files));
            Ok(token)
        })?,
    )?;
    let shared = Rc::clone(state);
    let use_expectation = move |_: &Lua, token: u64| {
        shared.expectations.borrow_mut().remove(&token);
        Ok(())
    };
    functions.raw_set("use_expectation", lua.create_function(use_expectation)?)?;
    let (shared, shared_host) = (Rc::clone(state), Rc::clone(host));
    functions.raw_set(
        "take_raised",
        lua.create_function(move |lua, ()| {
            let raised = shared_host.raised.take().unwrap_or_else(|| {
                ToolError::new(ToolErrorKind::Internal, "the function failed without an error")
            });
            let stopped = shared_host.control.borrow().as_ref().and_then(|control| control.stopped());
            if stopped.is_some() {
                return Err(mlua::Error::runtime("stopped"));
            }
            error_table(lua, shared.without_location(raised))
        })?,
    )
}

impl TestState {
    /// Returns the error of a tool call as a model receives it, without a location.
    fn without_location(&self, raised: ToolError) -> ToolError {
        let last = self.last_error.take();
        last.filter(|last| last.kind == raised.kind && raised.message.ends_with(&last.message))
            .unwrap_or(raised)
    }
}

fn error_table(lua: &Lua, error: ToolError) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("kind", error.kind.as_str())?;
    table.raw_set("message", error.message)?;
    table.raw_set("path", error.path)?;
    table.raw_set("details", error.details)?;
    Ok(table)
}

fn add_registration(
    functions: &Table,
    state: &Rc<TestState>,
    lua: &Lua,
    host: &Rc<Host>,
) -> mlua::Result<()> {
    let (state, host) = (Rc::clone(state), Rc::clone(host));
    functions.raw_set(
        "register",
        lua.create_function(move |lua, (name, body): (LuaString, Function)| {
            if host.phase.get() != Phase::TopLevel {
                return Err(HostError::script(
                    "test(…) must be called at the top level of its file, not inside a test",
                ));
            }
            let location = error::location(lua, &host.files);
            let line = fakes::split_location(&location, &state.file).map_or(1, |(line, _)| line);
            let mut names = state.names.borrow_mut();
            if names.len() >= MAX_TESTS {
                return Err(HostError::script(format!("more than {MAX_TESTS} tests in a file")));
            }
            if state.selected == Some(names.len()) {
                host.entry.replace(Some(body));
            }
            names.push(TestName { name: clean(&name.to_string_lossy(), MAX_NAME), line });
            Ok(())
        })?,
    )
}

fn temp_table(state: &Rc<TestState>, lua: &Lua, host: &Rc<Host>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let (shared, shared_host) = (Rc::clone(state), Rc::clone(host));
    table.raw_set(
        "write",
        lua.create_function(move |_, (name, text): (String, LuaString)| {
            shared.with_folder(&shared_host, "temp.write", |folder| folder.write(&name, &text.as_bytes()))
        })?,
    )?;
    let (shared, shared_host) = (Rc::clone(state), Rc::clone(host));
    table.raw_set(
        "read",
        lua.create_function(move |lua, name: String| {
            let text = shared.with_folder(&shared_host, "temp.read", |folder| folder.read(&name))?;
            text.map(|text| lua.create_string(text)).transpose()
        })?,
    )?;
    let (shared, shared_host) = (Rc::clone(state), Rc::clone(host));
    table.raw_set(
        "list",
        lua.create_function(move |_, ()| shared.with_folder(&shared_host, "temp.list", TempFolder::list))?,
    )?;
    Ok(table)
}

/// A tool that a test loaded.
struct Loaded {
    script: Arc<Script>,
    entry: Arc<ToolEntry>,
    validate: Validate,
    fakes: Vec<Fake>,
    authorize: Authorize,
    /// The script with only the permissions outside of the test, for `authorize`.
    authorized: Script,
}

fn add_tool_loading(
    functions: &Table,
    state: &Rc<TestState>,
    lua: &Lua,
    host: &Rc<Host>,
    marks: &Marks,
) -> mlua::Result<()> {
    let is_table = |_: &Lua, key: LuaValue| {
        Ok(matches!(key, LuaValue::String(name) if host_tables().iter().any(|table| name == table.name)))
    };
    functions.raw_set("is_table", lua.create_function(is_table)?)?;
    let owner =
        FakeOwner { state: LuaState::new(lua, marks), host: Rc::clone(host), guard: marks.guard.clone() };
    let (state, array) = (Rc::clone(state), marks.array.clone());
    functions.raw_set(
        "load",
        lua.create_function(move |lua, (name, options): (LuaValue, Table)| {
            let LuaValue::String(name) = &name else {
                let got = type_name(&name);
                return Err(HostError::script(format!("tool.load: expected a tool name, got {got}")));
            };
            let subject = (state.tools)(&name.to_string_lossy())
                .map_err(|error| HostError::lua(error.kind, format!("tool.load: {}", error.message)))?;
            let loaded = Rc::new(load(&state, subject, &options)?);
            let (state, owner, array) = (Rc::clone(&state), owner.clone(), array.clone());
            lua.create_async_function(move |lua, arguments: MultiValue| {
                let (state, owner, array, loaded) =
                    (Rc::clone(&state), owner.clone(), array.clone(), Rc::clone(&loaded));
                async move {
                    if owner.host.phase.get() != Phase::Function {
                        return Err(HostError::script(
                            "a tool can only be called inside a test, not while the file loads",
                        ));
                    }
                    let _waiting = owner.host.wait("a tool")?;
                    let ended = call(&state, &owner, &loaded, &arguments, &array).await;
                    let result = ended.map_err(|error| {
                        let raised = HostError::lua(error.kind, error.message.clone());
                        state.last_error.replace(Some(error));
                        raised
                    })?;
                    convert::to_lua(&lua, &result, &array, BigIntegers::Reject)
                        .map_err(|error| HostError::script(format!("{}: {}", error.path(), error.reason)))
                }
            })
        })?,
    )
}

/// Guard of an active tool call.
struct ActiveCall<'s>(&'s TestState);

impl<'s> ActiveCall<'s> {
    fn start(state: &'s TestState) -> Result<Self, ToolError> {
        if state.calls.get() >= MAX_CALLS {
            let message = format!("more than {MAX_CALLS} tool calls at the same time");
            return Err(ToolError::new(ToolErrorKind::Script, message));
        }
        state.calls.set(state.calls.get() + 1);
        Ok(Self(state))
    }
}

impl Drop for ActiveCall<'_> {
    fn drop(&mut self) {
        self.0.calls.set(self.0.calls.get().saturating_sub(1));
    }
}

/// Calls a loaded tool in its own state.
async fn call(
    state: &TestState,
    owner: &FakeOwner,
    loaded: &Loaded,
    arguments: &MultiValue,
    array: &Table,
) -> Result<Value, ToolError> {
    let name = loaded.script.tool.as_str();
    state.called.borrow_mut().insert(name.to_owned());
    let _active = ActiveCall::start(state)?;
    let invalid = |message: String| ToolError::new(ToolErrorKind::InvalidArguments, message);
    let given = match (arguments.front(), arguments.len()) {
        (None | Some(LuaValue::Nil), 0 | 1) => Value::Object(Map::new()),
        (Some(table @ LuaValue::Table(_)), 1) => convert::to_json(table, array)
            .map_err(|error| invalid(format!("`{name}`: {}: {}", error.path(), error.reason)))?,
        (other, _) => {
            let got = other.map_or("nothing", type_name);
            return Err(invalid(format!(
                "`{name}`: expected one table of arguments by name, as in {{ key = \"value\" }}, got {}, the first of \
                 which is a {got}",
                deftool_lang::text::count(arguments.len(), "value")
            )));
        }
    };
    let arguments = (loaded.validate)(given)?;
    // Checked before every call: another tool may have replaced a granted folder by a link.
    (loaded.authorize)(&loaded.authorized)?;
    let context = CallContext::default();
    let left = owner.host.control.borrow().as_ref().map_or(0.0, |control| control.seconds_left());
    // Slightly longer than the time left for the test, so that the test is stopped first.
    let left = Duration::from_secs_f64(left) + Duration::from_millis(20);
    let limit = limit(&loaded.script, &context, DEFAULT_TIMEOUT).min(left);
    let command = loaded.script.command.as_deref();
    let runner =
        command.map(|command| command::script_of(&loaded.script, command, &arguments)).transpose()?;
    let (script, arguments) =
        runner.as_ref().map_or((&*loaded.script, &arguments), |(script, all)| (script, all));
    let mut vm = Vm::with_globals(script, state.sink.clone(), DEFAULT_MEMORY, &|lua, _, marks| {
        fakes::install(&loaded.fakes, owner, lua, marks)
    })?;
    let control = Control::new(limit, None);
    let (answer, _) = vm.call(arguments, context, &control).await;
    let answer = answer.and_then(|output| match command {
        Some(command) => command::answer_from(command, &output.value),
        None => Ok(output),
    });
    let memory = script.memory.unwrap_or(DEFAULT_MEMORY);
    let answer = answer.map_err(|error| error::with_location(error, &script.file, memory))?;
    check_result(&loaded.entry, answer).map(|output| output.value)
}

/// Applies `options` to a tool.
fn load(state: &TestState, subject: TestSubject, options: &Table) -> mlua::Result<Loaded> {
    let mut fakes = Vec::new();
    let mut grants = None;
    let mut root = None;
    options.for_each(|key: LuaValue, value: LuaValue| {
        let key = match &key {
            LuaValue::String(key) => key.to_string_lossy(),
            other => error::describe(other),
        };
        match (key.as_str(), value) {
            ("grants", LuaValue::Table(table)) => grants = Some(table),
            ("root", LuaValue::String(path)) => root = Some(PathBuf::from(path.to_string_lossy())),
            ("grants" | "root", other) => {
                let got = type_name(&other);
                let example = "{ grants = { read = { temp_dir() } }, root = temp_dir() }";
                return Err(HostError::script(format!(
                    "tool.load: expected {example}, got a {got} for `{key}`"
                )));
            }
            (_, value) => fakes.push(fake(key, value)?),
        }
        Ok(())
    })?;
    let grant_limits = GrantLimits {
        name: &subject.script.tool,
        folder: state.folder.borrow().as_ref().map(|folder| folder.path().to_owned()),
        project: subject.script.root.clone().or_else(|| state.root.clone()).unwrap_or_default(),
        spec: &subject.script.permissions,
    };
    let mut permissions = subject.script.permissions.clone();
    let base = root.as_deref().unwrap_or(&grant_limits.project).to_owned();
    if root.is_some() {
        grant_limits.check_root(&base)?;
        for grant in permissions.read.iter_mut().chain(&mut permissions.write) {
            if let Ok(moved) = PathGrant::of_spec(&grant.name, &base) {
                *grant = moved;
            }
        }
    }
    if let Some(grants) = grants {
        grant_limits.replace(&mut permissions, &grants, &base)?;
    }
    let old = &subject.script;
    let script = Script { permissions, root: root.or_else(|| old.root.clone()), ..Script::clone(old) };
    let permissions = grant_limits.external_permissions(&script.permissions, &fakes);
    // The time limit of the test applies to its calls.
    let authorized = Script { permissions, timeout: None, ..script.clone() };
    (subject.authorize)(&authorized)
        .map_err(|error| HostError::lua(error.kind, format!("tool.load: {}", error.message)))?;
    let TestSubject { entry, validate, authorize, .. } = subject;
    Ok(Loaded { script: Arc::new(script), entry, validate, fakes, authorize, authorized })
}

fn fake(table: String, value: LuaValue) -> mlua::Result<Fake> {
    let Some(doc) = host_tables().iter().find(|doc| doc.name == table) else {
        let known: Vec<&str> = host_tables().iter().map(|doc| doc.name).collect();
        let (table, known) = (clean(&table, 60), known.join(", "));
        let message = format!("tool.load: unknown option `{table}`, expected one of grants, root, {known}");
        return Err(HostError::script(message));
    };
    let LuaValue::Table(given) = &value else {
        let got = type_name(&value);
        let message = format!("tool.load: expected a table of functions for `{table}`, got a {got}");
        return Err(HostError::script(message));
    };
    let known = || doc.functions.iter().map(|doc| doc.name).chain(doc.values.iter().map(|doc| doc.name));
    let mut fields = Vec::new();
    given.for_each(|field: LuaValue, value: LuaValue| {
        let field = match &field {
            LuaValue::String(field) => field.to_string_lossy(),
            other => error::describe(other),
        };
        if !doc.functions.is_empty() && !known().any(|name| name == field) {
            let known = known().collect::<Vec<_>>().join(", ");
            let message = format!(
                "tool.load: unknown field `{}` of `{table}`, expected one of {known}",
                clean(&field, 60)
            );
            return Err(HostError::script(message));
        }
        fields.push((field, value));
        Ok(())
    })?;
    Ok(Fake { table, fields })
}
