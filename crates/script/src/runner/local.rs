//! Runs a script on the caller's thread: for one-shot commands, benchmarks and embedders that manage their own threads.

use std::sync::Arc;
use std::time::Duration;

use deftool_lang::schema::Arguments;
use deftool_lang::tool::{CallContext, ToolError, ToolErrorKind, ToolOutput};

use crate::control::Control;
use crate::error;
use crate::events::ScriptSink;
use crate::host::command;
use crate::limits::{DEFAULT_MEMORY, DEFAULT_TIMEOUT};
use crate::script::Script;
use crate::vm::Vm;

/// A VM that runs the calls of one script sequentially on the caller's thread. The limits are those of a
/// [`ScriptRunner`](crate::ScriptRunner). A call blocks the thread until it has ended, even while the script waits.
pub struct LocalVm {
    script: Arc<Script>,
    sink: ScriptSink,
    vm: Option<Vm>,
    runtime: tokio::runtime::Runtime,
}

impl LocalVm {
    /// Loads `script`. Log lines are sent to `sink`.
    ///
    /// # Errors
    /// When the script does not compile, or no timers can be created.
    pub fn new(script: Arc<Script>, sink: ScriptSink) -> Result<Self, ToolError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(|error| {
                ToolError::new(ToolErrorKind::Internal, format!("cannot start the async runtime: {error}"))
            })?;
        let vm = match script.command {
            Some(_) => None,
            None => Some(Vm::new(&script, sink.clone(), DEFAULT_MEMORY)?),
        };
        Ok(Self { script, sink, vm, runtime })
    }

    /// Runs only the script's top level, as at the start of each call. Must not be called from async code. A command has
    /// none.
    ///
    /// # Errors
    /// When the top level fails, exceeds a limit or returns no function.
    pub fn run_top_level(&mut self) -> Result<(), ToolError> {
        if self.script.command.is_some() {
            return Ok(());
        }
        let control = Control::new(DEFAULT_TIMEOUT, None);
        let mut vm = match self.vm.take() {
            Some(vm) => vm,
            None => Vm::new(&self.script, self.sink.clone(), DEFAULT_MEMORY)?,
        };
        let answer = self.runtime.block_on(vm.run_top_level(&control));
        let memory = self.script.memory.unwrap_or(DEFAULT_MEMORY);
        answer.map(|_| ()).map_err(|error| error::with_location(error, &self.script.file, memory))
    }

    /// Runs one call to its end. `arguments` must be valid under the tool's schema. Must not be called from async code.
    ///
    /// # Errors
    /// When the call fails.
    pub fn call(&mut self, arguments: &Arguments, context: CallContext) -> Result<ToolOutput, ToolError> {
        let control = Control::new(limit(&self.script, &context, DEFAULT_TIMEOUT), None);
        let answer = if let Some(command) = &self.script.command {
            self.runtime.block_on(command::call(&self.script, command, arguments, &control))
        } else {
            let mut vm = match self.vm.take() {
                Some(vm) => vm,
                None => Vm::new(&self.script, self.sink.clone(), DEFAULT_MEMORY)?,
            };
            let (answer, reusable) = self.runtime.block_on(vm.call(arguments, context, &control));
            self.vm = reusable.then_some(vm);
            answer
        };
        let memory = self.script.memory.unwrap_or(DEFAULT_MEMORY);
        answer.map_err(|error| error::with_location(error, &self.script.file, memory))
    }
}

impl std::fmt::Debug for LocalVm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalVm").field("script", &self.script.file).finish_non_exhaustive()
    }
}

/// Returns the time limit of a call: the context's, else the spec's, else `default`.
pub(crate) fn limit(script: &Script, context: &CallContext, default: Duration) -> Duration {
    context.timeout.or(script.timeout).unwrap_or(default)
}
