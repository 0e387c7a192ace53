//! A Lua state for one script, and the execution of calls in it.
//!
//! A call sets the memory limit to the current usage of the state plus the script's limit, arms the interrupt and sets
//! the deadline. A clone of the loaded chunk runs in a new environment (the top level, 250 ms, no IO) and returns the
//! tool's function. The function runs in a coroutine with the arguments and may wait. The watchdog (`control`) stops it
//! at the deadline. Afterwards the state can run the next call. It must be dropped instead if it was stopped, has tasks
//! left, or has grown too much.

mod loader;
mod sandbox;

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use deftool_lang::schema::Arguments;
use deftool_lang::tool::{CallContext, ToolError, ToolErrorKind, ToolOutput, Usage};
use futures_util::stream::{FuturesUnordered, Stream};
use mlua::{Function, Lua, MultiValue, Value as LuaValue};

use self::sandbox::{ExtendGlobals, Sandbox};
use crate::control::{Answer, Control, Watched, now, poll_memory};
use crate::events::{LogLevel, ScriptSink};
use crate::host::{Host, Phase, ResultMarks, TaskThread};
use crate::script::{Parameter, Script};
use crate::{convert, error};

/// A state that uses this many bytes more than when it was new is not reused.
const MAX_GROWTH: usize = 4 << 20;

/// Value of [`Vm::loaded`] before the top level has ended.
const NOT_LOADED: u64 = u64::MAX;

/// A Lua state that runs one script.
pub(crate) struct Vm {
    sandbox: Sandbox,
    host: Rc<Host>,
    parameters: Vec<Parameter>,
    is_async: bool,
    memory: usize,
    used_when_new: usize,
    /// The time at which the top level of the current call ended. Set for metered calls only.
    loaded: Cell<u64>,
}

impl Vm {
    /// Creates a state for `script`. The memory limit of calls is `memory` bytes if the script sets none.
    ///
    /// # Errors
    /// When the script does not compile.
    pub(crate) fn new(script: &Script, sink: ScriptSink, memory: u64) -> Result<Self, ToolError> {
        Self::with_globals(script, sink, memory, &|_, _, _| Ok(()))
    }

    /// Creates a state like [`Vm::new`], with further globals.
    ///
    /// # Errors
    /// As [`Vm::new`].
    pub(crate) fn with_globals(
        script: &Script,
        sink: ScriptSink,
        memory: u64,
        extend: ExtendGlobals<'_>,
    ) -> Result<Self, ToolError> {
        let host = Rc::new(Host::new(script, sink));
        let sandbox = sandbox::build(script, &host, extend)?;
        let memory = script.memory.unwrap_or(memory);
        Ok(Self {
            used_when_new: sandbox.lua.used_memory(),
            sandbox,
            host,
            loaded: Cell::new(0),
            parameters: script.parameters.clone(),
            is_async: script.is_async,
            memory: usize::try_from(memory).unwrap_or(usize::MAX / 4).min(usize::MAX / 4),
        })
    }

    /// Runs one call. Returns its answer, and whether the state can be reused. If the future is dropped before its end,
    /// the script is stopped and the state must be dropped too.
    pub(crate) async fn call(
        &mut self,
        arguments: &Arguments,
        context: CallContext,
        control: &Arc<Control>,
    ) -> (Answer, bool) {
        self.enter(Some(arguments), context, control).await
    }

    /// Runs only the top level. Returns null, or its error.
    pub(crate) async fn run_top_level(&mut self, control: &Arc<Control>) -> Answer {
        self.enter(None, CallContext::default(), control).await.0
    }

    async fn enter(
        &mut self,
        arguments: Option<&Arguments>,
        context: CallContext,
        control: &Arc<Control>,
    ) -> (Answer, bool) {
        let before = self.lua().used_memory();
        let limit = before.saturating_add(self.memory);
        if let Err(error) = self.lua().set_memory_limit(limit) {
            return (Err(internal(&error)), false);
        }
        let meter = context.meter.clone();
        self.host.peak.set(before);
        self.loaded.set(if meter.is_some() { NOT_LOADED } else { 0 });
        if meter.is_some() {
            poll_memory(Arc::downgrade(control));
        }
        self.host.begin(context, control);
        let armed = self.sandbox.interrupt_hook.arm(control.switch());
        let started = now();
        control.limit_load(started);
        let watched = Watched::start(control);
        let answer = self.run(arguments, control, started).await;
        drop(watched);
        drop(armed);
        if let Some(meter) = meter {
            self.host.record_memory(self.lua());
            let ended = now();
            let loaded = self.loaded.get().clamp(started, ended);
            meter.record(Usage {
                load: Duration::from_nanos(loaded - started),
                run: Duration::from_nanos(ended - loaded),
                memory: self.host.peak.get().saturating_sub(before) as u64,
            });
        }

        let stopped = control.stopped();
        let answered = self.host.answer.borrow_mut().take();
        let answer = self.final_answer(answer, answered, stopped.map(|reason| control.error(reason)));
        let clean = self.host.end();
        self.sandbox.loader.end();
        let grown = self.lua().used_memory().saturating_sub(self.used_when_new) > MAX_GROWTH;
        (answer, clean && stopped.is_none() && !grown)
    }

    fn lua(&self) -> &Lua {
        &self.sandbox.lua
    }

    async fn run(&self, arguments: Option<&Arguments>, control: &Arc<Control>, started: u64) -> Answer {
        let function = self.load()?;
        let Some(arguments) = arguments else { return Ok(ToolOutput::default()) };
        if self.loaded.get() == NOT_LOADED {
            self.loaded.set(now());
        }
        if let Some(reason) = control.stopped() {
            return Err(control.error(reason));
        }
        control.limit_call(started);
        let mut passed = Vec::with_capacity(self.parameters.len() + 1);
        if self.is_async {
            passed.push(LuaValue::Function(self.callback().map_err(|error| internal(&error))?));
        }
        for Parameter { name, integer } in &self.parameters {
            let array = &self.sandbox.marks.array;
            passed.push(
                convert::argument_to_lua(self.lua(), arguments, name, *integer, array)
                    .map_err(|error| convert::bad_argument(&error))?,
            );
        }
        self.host.phase.set(Phase::Function);
        let main = self.sandbox.marks.guard.call_async::<MultiValue>(sandbox::guarded(function, passed));
        self.drive(main, control).await
    }

    /// Runs the chunk's top level in a new environment and returns the function that it returned.
    fn load(&self) -> Result<Function, ToolError> {
        self.host.phase.set(Phase::TopLevel);
        let returned = self.run_chunk().map_err(|error| self.lua_error(&error));
        let returned = returned.and_then(|results| self.first_result(results));
        match returned.map(|value| self.host.entry.take().map_or(value, LuaValue::Function)) {
            Ok(LuaValue::Function(function)) => Ok(function),
            Ok(other) => Err(ToolError::new(
                ToolErrorKind::Load,
                format!(
                    "{}: the script must return a function, but it returned {}",
                    self.host.file,
                    match &other {
                        LuaValue::Nil => "nothing",
                        other => error::type_name(other),
                    }
                ),
            )),
            Err(error) => Err(match error.kind {
                ToolErrorKind::Memory | ToolErrorKind::Internal => error,
                _ => ToolError { kind: ToolErrorKind::Load, ..error },
            }),
        }
    }

    fn run_chunk(&self) -> mlua::Result<MultiValue> {
        let environment = self.lua().create_table()?;
        environment.set_metatable(Some(self.sandbox.globals_metatable.clone()))?;
        // The environment falls back to read-only globals, so names that Luau resolved at load are still valid.
        environment.set_safeenv(true);
        let chunk = self.sandbox.template.deep_clone()?;
        chunk.set_environment(environment)?;
        self.sandbox.marks.guard.call(chunk)
    }

    /// Creates the callback that an `:async` tool gets as its first argument.
    fn callback(&self) -> mlua::Result<Function> {
        let host = Rc::clone(&self.host);
        let marks = self.sandbox.marks.of_results();
        self.lua().create_function(move |_, result: LuaValue| {
            if host.answer.borrow().is_some() {
                host.log(LogLevel::Warn, "the callback was called again; the first result counts");
                return Ok(());
            }
            let answer = answer_of(&result, &marks);
            host.answer.replace(Some(answer));
            Ok(())
        })
    }

    /// Polls the tool's function and its tasks until the call has an answer.
    async fn drive(&self, main: impl Future<Output = mlua::Result<MultiValue>>, control: &Control) -> Answer {
        let mut main = pin!(main);
        let mut main_ended = false;
        let mut tasks: FuturesUnordered<TaskThread> = FuturesUnordered::new();
        poll_fn(|context| {
            control.register(context.waker());
            if let Some(reason) = control.stopped() {
                return Poll::Ready(Err(control.error(reason)));
            }
            if !main_ended && let Poll::Ready(returned) = main.as_mut().poll(context) {
                main_ended = true;
                let ended = self.result_of(returned);
                if !self.is_async {
                    return Poll::Ready(ended.and_then(|result| self.serialise(&result)));
                }
                if let Err(error) = ended {
                    return Poll::Ready(Err(error));
                }
            }
            if let Poll::Ready(Err(error)) = self.poll_tasks(Pin::new(&mut tasks), context, control) {
                return Poll::Ready(Err(error));
            }
            if self.host.answer.borrow().is_some() {
                // `final_answer` uses the answer of the callback.
                return Poll::Ready(Ok(ToolOutput::default()));
            }
            if main_ended && tasks.is_empty() {
                return Poll::Ready(Err(ToolError::new(
                    ToolErrorKind::Script,
                    format!(
                        "{}: the script ended without calling its callback; call it with the result, now or from \
                         task.spawn or task.delay",
                        self.host.file
                    ),
                )));
            }
            Poll::Pending
        })
        .await
    }

    /// Runs the tasks that can make progress. Ready when no tasks are left.
    fn poll_tasks(
        &self,
        mut tasks: Pin<&mut FuturesUnordered<TaskThread>>,
        context: &mut Context<'_>,
        control: &Control,
    ) -> Poll<Result<(), ToolError>> {
        loop {
            let started = std::mem::take(&mut *self.host.started.borrow_mut());
            let idle = started.is_empty();
            for task in started {
                tasks.push(task);
            }
            if tasks.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match tasks.as_mut().poll_next(context) {
                Poll::Ready(Some(returned)) => {
                    self.host.tasks.set(self.host.tasks.get().saturating_sub(1));
                    if let Err(error) = self.result_of(returned) {
                        return Poll::Ready(Err(error));
                    }
                }
                Poll::Pending if idle && self.host.started.borrow().is_empty() => return Poll::Pending,
                Poll::Ready(None) | Poll::Pending => {}
            }
            if control.stopped().is_some() {
                return Poll::Pending;
            }
        }
    }

    fn result_of(&self, returned: mlua::Result<MultiValue>) -> Result<LuaValue, ToolError> {
        returned.map_err(|error| self.lua_error(&error)).and_then(|results| self.first_result(results))
    }

    /// Returns the first result of a guarded function, or the error that it raised.
    fn first_result(&self, results: MultiValue) -> Result<LuaValue, ToolError> {
        let extra = results.len().saturating_sub(2);
        let mut results = results.into_iter();
        let ok = matches!(results.next(), Some(LuaValue::Boolean(true)));
        let value = results.next().unwrap_or(LuaValue::Nil);
        if !ok {
            return Err(self.host.raised.borrow_mut().take().unwrap_or_else(|| {
                sandbox::raised_error(self.lua(), &self.host, &self.sandbox.marks.failure, &value)
            }));
        }
        if extra > 0 && self.host.phase.get() == Phase::Function {
            let text = format!("the script returned {} values; only the first is the result", extra + 1);
            self.host.log(LogLevel::Warn, &text);
        }
        Ok(value)
    }

    fn serialise(&self, result: &LuaValue) -> Answer {
        answer_of(result, &self.sandbox.marks.of_results())
    }

    /// Converts an error that the guard did not catch: an error of mlua, or a stop, which interrupts the guard too.
    fn lua_error(&self, raised: &mlua::Error) -> ToolError {
        self.host.raised.borrow_mut().take().unwrap_or_else(|| {
            let raised = LuaValue::Error(Box::new(raised.clone()));
            sandbox::raised_error(self.lua(), &self.host, &self.sandbox.marks.failure, &raised)
        })
    }

    /// Returns the answer of the call: the callback's result if there is one, else the stop, else the script's result.
    fn final_answer(&self, ended: Answer, answered: Option<Answer>, stopped: Option<ToolError>) -> Answer {
        match (answered, stopped, ended) {
            (Some(answer), stopped, ended) => {
                if let Some(error) = stopped.or(ended.err()) {
                    let text = format!("after the callback was called: {}", error.message);
                    self.host.log(LogLevel::Error, &text);
                }
                answer
            }
            (None, Some(error), Err(ToolError { details: Some(details), .. })) => {
                Err(error.with_details(details))
            }
            (None, Some(error), _) => Err(error),
            (None, None, ended) => ended,
        }
    }
}

/// Converts the result of a call to its answer. A returned `tool.failure` has the same effect as a raised one.
fn answer_of(result: &LuaValue, marks: &ResultMarks) -> Answer {
    if let LuaValue::Table(table) = result
        && table.has_metatable()
        && let error::Raised::Failure(message) = error::read_raised(result, &marks.failure)
    {
        return Err(ToolError::new(ToolErrorKind::Failure, error::message(&message)));
    }
    convert::to_output(result, marks).map_err(|error| convert::unserialisable(&error))
}

fn internal(error: &mlua::Error) -> ToolError {
    match error::read_error(error) {
        error::Raised::Memory => {
            ToolError::new(ToolErrorKind::Memory, "the script was stopped at its memory limit")
        }
        _ => ToolError::new(ToolErrorKind::Internal, error::message(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::control::Stop;

    /// Runs `source` once per control in the same state, until the state cannot be reused.
    fn run(source: &str, controls: Vec<Arc<Control>>, after_each: fn(&Control)) -> Vec<Answer> {
        let (sender, receiver) = mpsc::channel();
        let script = Script::new("probe", "scripts/probe.lua", source);
        // On another thread: a script that is not stopped would block this one forever.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let mut vm = Vm::new(&script, ScriptSink::default(), 16 << 20).unwrap();
            for control in controls {
                let (answer, reusable) =
                    runtime.block_on(vm.call(&Arguments::default(), CallContext::default(), &control));
                after_each(&control);
                sender.send(answer).unwrap();
                if !reusable {
                    return;
                }
            }
        });
        let mut answers = Vec::new();
        loop {
            match receiver.recv_timeout(Duration::from_secs(10)) {
                Ok(answer) => answers.push(answer),
                Err(mpsc::RecvTimeoutError::Disconnected) => return answers,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("the script was not stopped"),
            }
        }
    }

    #[test]
    fn a_stop_before_the_call_starts_is_not_lost() {
        for source in ["while true do end", "return function() while true do end end"] {
            let control = Control::new(Duration::from_secs(60), None);
            control.stop(Stop::Canceled);
            let answers = run(source, vec![control], |_| {});
            let kinds: Vec<_> = answers.into_iter().map(|answer| answer.unwrap_err().kind).collect();
            assert_eq!(kinds, [ToolErrorKind::Canceled], "{source}");
        }
    }

    #[test]
    fn a_stop_after_the_end_of_a_call_does_not_affect_the_next_call() {
        let control = || Control::new(Duration::from_secs(60), None);
        let source = "local n = 0 for i = 1, 1000 do n += i end return function() return n end";
        let answers = run(source, vec![control(), control(), control()], |ended| ended.stop(Stop::Canceled));
        assert_eq!(answers, vec![Ok(ToolOutput::from(serde_json::Value::from(500_500))); 3]);
    }
}
