//! The host tables: what a script can call beyond Luau's own libraries.
//!
//! A state's host tables are made once and read-only; what belongs to a call (its context, its deadline, its tasks,
//! its budget of log lines) is in [`Host`], which every host function shares and which is emptied between calls.
//! Functions that wait or do IO are refused while the script's top level runs.

mod docs;
mod env;
mod fs;
mod http;
mod json;
mod log;
mod options;
mod process;
mod spent;
mod task;
mod text;
mod time;
mod tool;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue};

pub use docs::{FunctionDoc, TableDoc, ValueDoc};
pub use process::{guard_programs, kill_programs};
pub(super) use task::TaskThread;

use super::control::{Answer, Control, Stop, thread_time};
use super::error::{HostError, clean};
use super::permission::Permissions;
use super::{Script, TOP_LEVEL_LIMIT};
use crate::tool::{CallContext, ToolErrorKind};

/// How serious a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For the script's author.
    Debug,
    /// What happened; `print` too.
    Info,
    /// Odd, but the call goes on.
    Warn,
    /// Wrong.
    Error,
}

impl LogLevel {
    /// The lowercase word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// What a running script says beside its result.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptEvent {
    /// A log line.
    Logged {
        /// The tool.
        tool: String,
        /// The request on whose behalf it runs, or empty.
        request_id: String,
        /// How serious.
        level: LogLevel,
        /// The line; cut, without control characters.
        text: String,
    },
    /// How far a call is.
    Progressed {
        /// The tool.
        tool: String,
        /// The request on whose behalf it runs, or empty.
        request_id: String,
        /// From 0 to 1, when the script knows.
        fraction: Option<f64>,
        /// What it is doing.
        text: String,
    },
}

/// Where log lines and progress go. It runs on a script's thread and must not block. `None` of it: `tracing`, under
/// the target `deftool::script`.
#[derive(Clone, Default)]
pub struct ScriptSink(Option<Arc<dyn Fn(ScriptEvent) + Send + Sync>>);

impl ScriptSink {
    /// Sends events to `sink`.
    pub fn new(sink: impl Fn(ScriptEvent) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(sink)))
    }

    pub(super) fn send(&self, event: ScriptEvent) {
        if let Some(sink) = &self.0 {
            return sink(event);
        }
        match event {
            ScriptEvent::Logged { tool, request_id, level, text } => match level {
                LogLevel::Debug => tracing::debug!(target: "deftool::script", tool, request_id, "{text}"),
                LogLevel::Info => tracing::info!(target: "deftool::script", tool, request_id, "{text}"),
                LogLevel::Warn => tracing::warn!(target: "deftool::script", tool, request_id, "{text}"),
                LogLevel::Error => tracing::error!(target: "deftool::script", tool, request_id, "{text}"),
            },
            ScriptEvent::Progressed { tool, request_id, fraction, text } => {
                tracing::debug!(target: "deftool::script", tool, request_id, fraction, "{text}");
            }
        }
    }
}

impl fmt::Debug for ScriptSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "ScriptSink(..)" } else { "ScriptSink(tracing)" })
    }
}

/// Most log and progress lines of one call; the rest are counted and dropped.
pub(super) const MAX_EVENTS: u32 = 1_000;
/// Most of them in bytes.
const MAX_OUTPUT: usize = 1 << 20;
/// Longest line, in characters.
pub(super) const MAX_LINE: usize = 2_000;

/// What of a script is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing.
    Idle,
    /// The chunk's top level.
    TopLevel,
    /// The tool's function.
    Function,
}

/// The call that a state is running, for its host functions.
pub(super) struct Host {
    pub(super) tool: String,
    pub(super) file: String,
    /// The script's file and those of its modules.
    pub(super) files: Rc<[String]>,
    pub(super) phase: Cell<Phase>,
    pub(super) context: RefCell<CallContext>,
    pub(super) control: RefCell<Option<Arc<Control>>>,
    /// Tasks started since the driver last looked.
    pub(super) started: RefCell<Vec<TaskThread>>,
    /// Tasks that have not ended.
    pub(super) tasks: Cell<usize>,
    /// What the callback of an `:async` tool was given first.
    pub(super) answer: RefCell<Option<Answer>>,
    /// The error that a guarded function ended with.
    pub(super) raised: RefCell<Option<crate::tool::ToolError>>,
    /// What is run in place of what the top level returns: a test.
    pub(super) entry: RefCell<Option<Function>>,
    /// The most memory that the state was seen to use, in bytes.
    pub(super) peak: Cell<usize>,
    /// What the thread had worked when the top level was first looked at.
    worked: Cell<Option<Duration>>,
    /// Host functions that have not come back.
    waiting: Cell<usize>,
    events: Cell<u32>,
    /// Bytes of the lines that were sent.
    output: Cell<usize>,
    /// Whether the script changed something that outlives the call.
    spoiled: Cell<bool>,
    /// What the call has written.
    spent: Arc<spent::Spent>,
    permissions: Permissions,
    /// The project.
    root: Option<PathBuf>,
    /// What the call may do with files.
    grants: RefCell<Arc<fs::Grants>>,
    sink: ScriptSink,
}

/// A host function that waits, for as long as it does.
pub(in crate::script) struct Waiting(Rc<Host>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get().saturating_sub(1));
    }
}

impl Host {
    /// The host of `script`'s states.
    pub(super) fn new(script: &Script, sink: ScriptSink) -> Self {
        Self {
            tool: script.tool.clone(),
            file: script.file.clone(),
            files: std::iter::once(&script.file)
                .chain(script.modules.iter().map(|module| &module.file))
                .cloned()
                .collect(),
            phase: Cell::new(Phase::Idle),
            context: RefCell::default(),
            control: RefCell::new(None),
            started: RefCell::default(),
            tasks: Cell::new(0),
            answer: RefCell::new(None),
            raised: RefCell::new(None),
            entry: RefCell::new(None),
            peak: Cell::new(0),
            worked: Cell::new(None),
            waiting: Cell::new(0),
            events: Cell::new(0),
            output: Cell::new(0),
            spoiled: Cell::new(false),
            spent: Arc::default(),
            permissions: script.permissions.clone(),
            root: script.root.clone(),
            grants: RefCell::default(),
            sink,
        }
    }

    /// Begins a call.
    pub(super) fn begin(&self, context: CallContext, control: &Arc<Control>) {
        self.context.replace(context);
        self.control.replace(Some(Arc::clone(control)));
        self.worked.set(None);
        self.events.set(0);
        self.output.set(0);
        self.spent.reset();
        let pins = control.pins(&self.permissions);
        self.grants.replace(Arc::new(fs::Grants::new(&self.permissions, self.root.as_deref(), pins)));
    }

    /// Has the state dropped after the call.
    pub(super) fn spoil(&self) {
        self.spoiled.set(true);
    }

    /// Forgets the call. Whether nothing of it is left, so that the state may run another.
    pub(super) fn end(&self) -> bool {
        let dropped = self.events.get().saturating_sub(MAX_EVENTS);
        if dropped > 0 {
            self.events.set(0);
            self.output.set(0);
            self.log(LogLevel::Warn, &format!("{dropped} further lines of this call were dropped"));
        }
        self.phase.set(Phase::Idle);
        if let Some(control) = self.control.replace(None) {
            control.pull();
        }
        self.answer.replace(None);
        self.raised.replace(None);
        self.started.borrow_mut().clear();
        // A coroutine that was left in the middle of a wait keeps it until it is collected.
        self.tasks.replace(0) == 0 && self.waiting.get() == 0 && !self.spoiled.get()
    }

    /// Looks, as the interrupt that was nudged, at the memory that the state uses and at what its thread worked for the
    /// top level; and parks the interrupt.
    pub(super) fn look(&self, lua: &Lua) {
        self.look_at_memory(lua);
        let control = self.control.borrow();
        let Some(control) = control.as_ref() else { return };
        if self.phase.get() == Phase::TopLevel && control.is_load_looked_at() {
            let worked = thread_time();
            let first = self.worked.get().unwrap_or(worked);
            self.worked.set(Some(first));
            if worked.saturating_sub(first) >= TOP_LEVEL_LIMIT {
                control.stop(Stop::SlowLoad);
            }
        }
        control.switch().park(lua);
    }

    /// Looks at the memory that the state uses.
    pub(super) fn look_at_memory(&self, lua: &Lua) {
        self.peak.set(self.peak.get().max(lua.used_memory()));
    }

    /// Whether `message` begins with the name of one of the script's own files.
    pub(super) fn names_own_file(&self, message: &str) -> bool {
        self.files.iter().any(|file| message.starts_with(file.as_str()))
    }

    /// Logs `text`, within the call's budget.
    pub(super) fn log(&self, level: LogLevel, text: &str) {
        if let Some(text) = self.spend_event(text) {
            self.sink.send(ScriptEvent::Logged {
                tool: self.tool.clone(),
                request_id: self.request_id(),
                level,
                text,
            });
        }
    }

    fn progress(&self, fraction: Option<f64>, text: &str) {
        if let Some(text) = self.spend_event(text) {
            self.sink.send(ScriptEvent::Progressed {
                tool: self.tool.clone(),
                request_id: self.request_id(),
                fraction,
                text,
            });
        }
    }

    fn request_id(&self) -> String {
        self.context.borrow().request_id.clone()
    }

    /// `text` as it may be sent; `None` when the call has said enough.
    fn spend_event(&self, text: &str) -> Option<String> {
        if self.output.get() > MAX_OUTPUT && self.events.get() < MAX_EVENTS {
            self.events.set(MAX_EVENTS);
        }
        self.events.set(self.events.get().saturating_add(1));
        if self.events.get() > MAX_EVENTS {
            return None;
        }
        let text = clean(text, MAX_LINE);
        self.output.set(self.output.get() + text.len());
        Some(text)
    }

    /// Begins a wait of `function`; refused while the top level runs.
    pub(in crate::script) fn wait(self: &Rc<Self>, function: &str) -> mlua::Result<Waiting> {
        self.only_in_function(function)?;
        self.waiting.set(self.waiting.get() + 1);
        Ok(Waiting(Rc::clone(self)))
    }

    /// Refuses `function` while the top level runs.
    pub(in crate::script) fn only_in_function(&self, function: &str) -> mlua::Result<()> {
        match self.phase.get() {
            Phase::Function => Ok(()),
            Phase::TopLevel | Phase::Idle => Err(HostError::lua(
                ToolErrorKind::Load,
                format!(
                    "{function} is not available while the script loads; call it inside the tool's function"
                ),
            )),
        }
    }
}

/// The marks that tell tables apart, and what host tables need of the prelude.
pub(super) struct Marks {
    /// The metatable of `json.array`'s tables.
    pub(super) array: Table,
    /// The metatable of `tool.failure`'s tables.
    pub(super) failure: Table,
    /// Calls a function and keeps what it raises.
    pub(super) guard: Function,
    /// Puts the functions of a table behind safepoints: some take long, and code in C may call them again and again.
    pub(super) cover: Function,
}

/// What scripts' authors are told of every host table.
pub const fn host_tables() -> &'static [TableDoc] {
    const {
        &[
            json::DOC,
            text::DOC,
            time::DOC,
            task::DOC,
            log::DOC,
            tool::DOC,
            fs::DOC,
            http::DOC,
            process::DOC,
            env::DOC,
        ]
    }
}

/// Adds every host table to `globals`, read-only.
pub(super) fn install(
    lua: &Lua,
    globals: &Table,
    host: &Rc<Host>,
    marks: &Marks,
    script: &Script,
) -> mlua::Result<()> {
    for (doc, table) in [
        (json::DOC, json::table(lua, marks)?),
        (text::DOC, text::table(lua, host, marks)?),
        (time::DOC, time::table(lua)?),
        (task::DOC, task::table(lua, host, marks)?),
        (log::DOC, log::table(lua, host)?),
        (tool::DOC, tool::table(lua, host, marks)?),
        (fs::DOC, fs::table(lua, host, marks)?),
        (http::DOC, http::table(lua, host, marks, script)?),
        (process::DOC, process::table(lua, host, script)?),
        (env::DOC, env::table(lua, host, script)?),
    ] {
        marks.cover.call::<()>(&table)?;
        table.set_readonly(true);
        globals.raw_set(doc.name, table)?;
    }
    globals.raw_set("print", log::print(lua, host)?)
}

/// A mistake in how a host function was called, as in `task.wait: expected a number of seconds, got a table`.
fn misuse(function: &str, expected: &str, got: Option<&LuaValue>) -> mlua::Error {
    let got = got.map_or("nothing", super::convert::type_name);
    HostError::script(format!("{function}: expected {expected}, got {got}"))
}

/// The argument at `index` (from 0) as text.
fn text_argument(function: &str, arguments: &MultiValue, index: usize) -> mlua::Result<String> {
    match arguments.get(index) {
        Some(LuaValue::String(text)) => Ok(text.to_string_lossy()),
        Some(LuaValue::Integer(integer)) => Ok(integer.to_string()),
        Some(LuaValue::Number(number)) => Ok(number.to_string()),
        other => Err(misuse(function, "a string", other)),
    }
}

/// The argument at `index` (from 0) as a finite number.
fn number_argument(function: &str, arguments: &MultiValue, index: usize, what: &str) -> mlua::Result<f64> {
    match arguments.get(index) {
        // It was a float before mlua looked at it.
        #[allow(clippy::cast_precision_loss)]
        Some(LuaValue::Integer(integer)) => Ok(*integer as f64),
        Some(LuaValue::Number(number)) if number.is_finite() => Ok(*number),
        other => Err(misuse(function, what, other)),
    }
}
