//! The state of the current call, which all host functions of a Lua state share.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use deftool_lang::spec::Effect;
use deftool_lang::tool::{CallContext, ToolError, ToolErrorKind};
use mlua::thread::AsyncThread;
use mlua::{Function, Lua, MultiValue, Table};

use super::fs::context::Quota;
use super::fs::grant::FileGrants;
use crate::control::{Answer, Control, Stop, thread_time};
use crate::error::{HostError, clean};
use crate::events::{LogLevel, ScriptEvent, ScriptSink};
use crate::limits::{MAX_EVENTS, MAX_LINE, TOP_LEVEL_LIMIT};
use crate::permission::ScriptPermissions;
use crate::script::Script;

/// Maximum total length of the log and progress lines of a call, in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// The part of a script that is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No part.
    Idle,
    /// The top level of the chunk.
    TopLevel,
    /// The function of the tool.
    Function,
}

/// The state of the current call of a Lua state, shared by its host functions.
pub(crate) struct Host {
    pub(crate) tool: String,
    pub(crate) file: String,
    /// The files of the script and its modules.
    pub(crate) files: Rc<[String]>,
    pub(crate) phase: Cell<Phase>,
    pub(crate) context: RefCell<CallContext>,
    pub(crate) control: RefCell<Option<Arc<Control>>>,
    /// Tasks that the driver has not picked up yet.
    pub(crate) started: RefCell<Vec<TaskThread>>,
    /// Number of tasks that have not ended.
    pub(crate) tasks: Cell<usize>,
    /// The first result that the callback of an `:async` tool received.
    pub(crate) answer: RefCell<Option<Answer>>,
    /// The error that ended a guarded function.
    pub(crate) raised: RefCell<Option<ToolError>>,
    /// The function to run instead of the one that the top level returns. Set for tests.
    pub(crate) entry: RefCell<Option<Function>>,
    /// Peak memory use of the state, in bytes, as far as measured.
    pub(crate) peak: Cell<usize>,
    /// CPU time of the thread at the first check of the top level.
    load_start: Cell<Option<Duration>>,
    /// Number of host functions that have not returned.
    pending_waits: Cell<usize>,
    events: Cell<u32>,
    /// Total length of the sent lines, in bytes.
    output: Cell<usize>,
    /// Number of idempotency keys that requests of the call got.
    keys: Cell<u32>,
    /// Whether the script changed something that persists after the call. Then the Lua state is not reused.
    is_dirty: Cell<bool>,
    /// The amount of data that the call has written.
    pub(super) quota: Arc<Quota>,
    permissions: ScriptPermissions,
    /// The project folder.
    root: Option<PathBuf>,
    /// The file grants of the call.
    pub(super) grants: RefCell<Arc<FileGrants>>,
    sink: ScriptSink,
}

/// Guard that counts a waiting host function until it is dropped.
pub(crate) struct WaitGuard(Rc<Host>);

impl Drop for WaitGuard {
    fn drop(&mut self) {
        self.0.pending_waits.set(self.0.pending_waits.get().saturating_sub(1));
    }
}

impl Host {
    /// Creates the host for a Lua state of `script`.
    pub(crate) fn new(script: &Script, sink: ScriptSink) -> Self {
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
            keys: Cell::new(0),
            is_dirty: Cell::new(false),
            quota: Arc::default(),
            permissions: script.permissions.clone(),
            root: script.root.clone(),
            grants: RefCell::default(),
            sink,
        }
    }

    /// Starts a call.
    pub(crate) fn begin(&self, context: CallContext, control: &Arc<Control>) {
        self.context.replace(context);
        self.control.replace(Some(Arc::clone(control)));
        self.load_start.set(None);
        self.events.set(0);
        self.output.set(0);
        self.keys.set(0);
        self.quota.reset();
        let pins = control.pinned_paths(&self.permissions);
        self.grants.replace(Arc::new(FileGrants::new(&self.permissions, self.root.as_deref(), pins)));
    }

    /// Prevents reuse of the Lua state after the call.
    pub(crate) fn mark_dirty(&self) {
        self.is_dirty.set(true);
    }

    /// Ends the call and resets its state. Returns whether the Lua state can be reused for another call.
    pub(crate) fn end(&self) -> bool {
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
    pub(crate) fn on_interrupt(&self, lua: &Lua) {
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
    pub(crate) fn record_memory(&self, lua: &Lua) {
        self.peak.set(self.peak.get().max(lua.used_memory()));
    }

    /// Returns whether `message` starts with the name of one of the script's files.
    pub(crate) fn names_own_file(&self, message: &str) -> bool {
        self.files.iter().any(|file| message.starts_with(file.as_str()))
    }

    /// Returns the idempotency key for the next request of a keyed call. The first request gets the key of the call.
    /// Later ones get that key and a number, because a service ignores a second request with the same key.
    pub(super) fn next_idempotency_key(&self) -> Option<String> {
        let context = self.context.borrow();
        if context.effect != Effect::Keyed || context.idempotency_key.is_empty() {
            return None;
        }
        let number = self.keys.get() + 1;
        self.keys.set(number);
        let key = &context.idempotency_key;
        Some(if number == 1 { key.clone() } else { format!("{key}-{number}") })
    }

    /// Logs `text` within the call's limits.
    pub(crate) fn log(&self, level: LogLevel, text: &str) {
        if let Some(text) = self.spend_event(text) {
            self.sink.send(ScriptEvent::Logged {
                tool: self.tool.clone(),
                request_id: self.request_id(),
                call_id: self.call_id(),
                level,
                text,
            });
        }
    }

    pub(super) fn progress(&self, fraction: Option<f64>, text: &str) {
        if let Some(text) = self.spend_event(text) {
            self.sink.send(ScriptEvent::Progressed {
                tool: self.tool.clone(),
                request_id: self.request_id(),
                call_id: self.call_id(),
                fraction,
                text,
            });
        }
    }

    fn request_id(&self) -> String {
        self.context.borrow().request_id.clone()
    }

    fn call_id(&self) -> String {
        self.context.borrow().call_id.clone()
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
pub(crate) struct Marks {
    /// The metatable of tables from `json.array`.
    pub(crate) array: Table,
    /// The metatable of tables from `tool.failure`.
    pub(crate) failure: Table,
    /// The metatable of tables from `tool.image` and `tool.audio`.
    pub(crate) media: Table,
    /// Calls a function and stores the value that it raises.
    pub(crate) guard: Function,
    /// Adds a safepoint to each function of a table: some are slow, and C functions may call them in a loop.
    pub(crate) cover: Function,
}

impl Marks {
    /// Returns the marks that a result may contain.
    pub(crate) fn of_results(&self) -> ResultMarks {
        let Self { array, failure, media, .. } = self;
        ResultMarks { array: array.clone(), failure: failure.clone(), media: media.clone() }
    }
}

/// The metatables of tables that a result may contain. See [`Marks`].
pub(crate) struct ResultMarks {
    pub(crate) array: Table,
    pub(crate) failure: Table,
    pub(crate) media: Table,
}

/// A task: an optional delay, then a Lua thread.
pub(crate) struct TaskThread {
    pub(super) delay: Option<Pin<Box<tokio::time::Sleep>>>,
    pub(super) thread: Pin<Box<AsyncThread<MultiValue>>>,
}

impl Future for TaskThread {
    type Output = mlua::Result<MultiValue>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(delay) = &mut self.delay {
            match delay.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) => self.delay = None,
            }
        }
        self.thread.as_mut().poll(context)
    }
}
