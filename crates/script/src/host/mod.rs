//! The host tables: the global tables that scripts can use in addition to Luau's libraries.
//!
//! The host tables of a Lua state are created once and are read-only. The state of a call (its context, deadline, tasks
//! and log budget) is in [`Host`], which all host functions share and which is reset between calls. Functions that wait
//! or do IO raise an error while the script's top level runs.

mod docs;
mod env;
mod fs;
mod http;
mod json;
mod log;
mod options;
mod process;
mod quota;
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

use deftool_lang::tool::{CallContext, ToolErrorKind};
use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue};

pub use docs::{FunctionDoc, TableDoc, ValueDoc};
pub use process::{guard_programs, kill_programs};
pub(super) use task::TaskThread;

use super::control::{Answer, Control, Stop, thread_time};
use super::error::{HostError, clean};
use super::permission::ScriptPermissions;
use super::{Script, TOP_LEVEL_LIMIT};

/// The level of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details for the script's author.
    Debug,
    /// Information. Also the level of `print`.
    Info,
    /// A problem that does not stop the call.
    Warn,
    /// An error.
    Error,
}

impl LogLevel {
    /// Returns the level in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// An event that a running script emits in addition to its result.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptEvent {
    /// A log line.
    Logged {
        /// The name of the tool.
        tool: String,
        /// The ID of the request, or empty.
        request_id: String,
        /// The level.
        level: LogLevel,
        /// The line, truncated and without control characters.
        text: String,
    },
    /// The progress of a call.
    Progressed {
        /// The name of the tool.
        tool: String,
        /// The ID of the request, or empty.
        request_id: String,
        /// The completed fraction, from 0 to 1, if known.
        fraction: Option<f64>,
        /// The current activity.
        text: String,
    },
}

/// The receiver of log lines and progress. It runs on the script's thread and must not block. The default sends events
/// to `tracing` with the target `deftool::script`.
#[derive(Clone, Default)]
pub struct ScriptSink(Option<Arc<dyn Fn(ScriptEvent) + Send + Sync>>);

impl ScriptSink {
    /// Creates a sink that calls `sink` for each event.
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

/// Maximum number of log and progress lines of a call. Further lines are counted and dropped.
pub(super) const MAX_EVENTS: u32 = 1_000;
/// Maximum total length of these lines, in bytes.
const MAX_OUTPUT: usize = 1 << 20;
/// Maximum length of a line, in characters.
pub(super) const MAX_LINE: usize = 2_000;

/// The part of a script that is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No part.
    Idle,
    /// The top level of the chunk.
    TopLevel,
    /// The function of the tool.
    Function,
}

/// The state of the current call of a Lua state, shared by its host functions.
pub(super) struct Host {
    pub(super) tool: String,
    pub(super) file: String,
    /// The files of the script and its modules.
    pub(super) files: Rc<[String]>,
    pub(super) phase: Cell<Phase>,
    pub(super) context: RefCell<CallContext>,
    pub(super) control: RefCell<Option<Arc<Control>>>,
    /// Tasks that the driver has not picked up yet.
    pub(super) started: RefCell<Vec<TaskThread>>,
    /// Number of tasks that have not ended.
    pub(super) tasks: Cell<usize>,
    /// The first result that the callback of an `:async` tool received.
    pub(super) answer: RefCell<Option<Answer>>,
    /// The error that ended a guarded function.
    pub(super) raised: RefCell<Option<deftool_lang::tool::ToolError>>,
    /// The function to run instead of the one that the top level returns. Set for tests.
    pub(super) entry: RefCell<Option<Function>>,
    /// Peak memory use of the state, in bytes, as far as measured.
    pub(super) peak: Cell<usize>,
    /// CPU time of the thread at the first check of the top level.
    load_start: Cell<Option<Duration>>,
    /// Number of host functions that have not returned.
    pending_waits: Cell<usize>,
    events: Cell<u32>,
    /// Total length of the sent lines, in bytes.
    output: Cell<usize>,
    /// Whether the script changed something that persists after the call. Then the Lua state is not reused.
    is_dirty: Cell<bool>,
    /// The amount of data that the call has written.
    quota: Arc<quota::Quota>,
    permissions: ScriptPermissions,
    /// The project folder.
    root: Option<PathBuf>,
    /// The file grants of the call.
    grants: RefCell<Arc<fs::FileGrants>>,
    sink: ScriptSink,
}

/// Counts a waiting host function until it is dropped.
pub(crate) struct WaitGuard(Rc<Host>);

impl Drop for WaitGuard {
    fn drop(&mut self) {
        self.0.pending_waits.set(self.0.pending_waits.get().saturating_sub(1));
    }
}

impl Host {
    /// Creates the host for a Lua state of `script`.
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
            load_start: Cell::new(None),
            pending_waits: Cell::new(0),
            events: Cell::new(0),
            output: Cell::new(0),
            is_dirty: Cell::new(false),
            quota: Arc::default(),
            permissions: script.permissions.clone(),
            root: script.root.clone(),
            grants: RefCell::default(),
            sink,
        }
    }

    /// Starts a call.
    pub(super) fn begin(&self, context: CallContext, control: &Arc<Control>) {
        self.context.replace(context);
        self.control.replace(Some(Arc::clone(control)));
        self.load_start.set(None);
        self.events.set(0);
        self.output.set(0);
        self.quota.reset();
        let pins = control.pinned_paths(&self.permissions);
        self.grants.replace(Arc::new(fs::FileGrants::new(&self.permissions, self.root.as_deref(), pins)));
    }

    /// Prevents reuse of the Lua state after the call.
    pub(super) fn mark_dirty(&self) {
        self.is_dirty.set(true);
    }

    /// Ends the call and resets its state. Returns whether the Lua state can be reused for another call.
    pub(super) fn end(&self) -> bool {
        let dropped = self.events.get().saturating_sub(MAX_EVENTS);
        if dropped > 0 {
            self.events.set(0);
            self.output.set(0);
            self.log(LogLevel::Warn, &format!("{dropped} further lines of this call were dropped"));
        }
        self.phase.set(Phase::Idle);
        if let Some(control) = self.control.replace(None) {
            control.abort_resources();
        }
        self.answer.replace(None);
        self.raised.replace(None);
        self.started.borrow_mut().clear();
        // An abandoned coroutine holds its `WaitGuard` until it is garbage collected.
        self.tasks.replace(0) == 0 && self.pending_waits.get() == 0 && !self.is_dirty.get()
    }

    /// Runs at a requested interrupt: records the memory use, checks the CPU time of the top level, and disables the
    /// interrupt.
    pub(super) fn on_interrupt(&self, lua: &Lua) {
        self.record_memory(lua);
        let control = self.control.borrow();
        let Some(control) = control.as_ref() else { return };
        if self.phase.get() == Phase::TopLevel && control.is_load_check_due() {
            let cpu_time = thread_time();
            let start = self.load_start.get().unwrap_or(cpu_time);
            self.load_start.set(Some(start));
            if cpu_time.saturating_sub(start) >= TOP_LEVEL_LIMIT {
                control.stop(Stop::SlowLoad);
            }
        }
        control.switch().disable(lua);
    }

    /// Updates the peak memory use.
    pub(super) fn record_memory(&self, lua: &Lua) {
        self.peak.set(self.peak.get().max(lua.used_memory()));
    }

    /// Returns whether `message` starts with the name of one of the script's files.
    pub(super) fn names_own_file(&self, message: &str) -> bool {
        self.files.iter().any(|file| message.starts_with(file.as_str()))
    }

    /// Logs `text` within the call's limits.
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

    /// Cleans `text` and counts it. Returns `None` when the call has reached a limit.
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

    /// Starts a wait in `function`.
    ///
    /// # Errors
    /// While the top level runs.
    pub(crate) fn wait(self: &Rc<Self>, function: &str) -> mlua::Result<WaitGuard> {
        self.only_in_function(function)?;
        self.pending_waits.set(self.pending_waits.get() + 1);
        Ok(WaitGuard(Rc::clone(self)))
    }

    /// Returns an error while the top level runs.
    pub(crate) fn only_in_function(&self, function: &str) -> mlua::Result<()> {
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

/// The metatables that mark special tables, and the functions of the prelude that host tables use.
pub(super) struct Marks {
    /// The metatable of tables from `json.array`.
    pub(super) array: Table,
    /// The metatable of tables from `tool.failure`.
    pub(super) failure: Table,
    /// Calls a function and stores the value that it raises.
    pub(super) guard: Function,
    /// Adds a safepoint to each function of a table: some are slow, and C functions may call them in a loop.
    pub(super) cover: Function,
}

/// Returns the documentation of all host tables.
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

/// Adds all host tables to `globals`, read-only.
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

/// Creates an argument error, such as `task.wait: expected a number of seconds, got table`.
fn argument_error(function: &str, expected: &str, got: Option<&LuaValue>) -> mlua::Error {
    let got = got.map_or("nothing", super::convert::type_name);
    HostError::script(format!("{function}: expected {expected}, got {got}"))
}

/// Returns the argument at `index` (from 0) as a string.
fn text_argument(function: &str, arguments: &MultiValue, index: usize) -> mlua::Result<String> {
    match arguments.get(index) {
        Some(LuaValue::String(text)) => Ok(text.to_string_lossy()),
        Some(LuaValue::Integer(integer)) => Ok(integer.to_string()),
        Some(LuaValue::Number(number)) => Ok(number.to_string()),
        other => Err(argument_error(function, "a string", other)),
    }
}

/// Returns the argument at `index` (from 0) as a finite number.
fn number_argument(function: &str, arguments: &MultiValue, index: usize, what: &str) -> mlua::Result<f64> {
    match arguments.get(index) {
        // mlua converted it from a float.
        #[allow(clippy::cast_precision_loss)]
        Some(LuaValue::Integer(integer)) => Ok(*integer as f64),
        Some(LuaValue::Number(number)) if number.is_finite() => Ok(*number),
        other => Err(argument_error(function, what, other)),
    }
}
