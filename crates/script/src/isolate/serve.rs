//! The child's side: runs the calls that arrive on stdin, one at a time, and writes their results to stdout.
//!
//! One thread reads, so that it can detect a cancellation or the end of the parent while a script runs on the other
//! thread. Scripts and their programs have `/dev/null` as stdin and stdout: the pipes to the parent are moved to other
//! descriptors first.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::time::Duration;

use deftool_lang::schema::Arguments;
use deftool_lang::tool::{Attachment, CallContext, ToolError, ToolErrorKind, ToolOutput, Usage};
use deftool_process::frame::{NO_PAYLOAD, head, read_frame, write_frame};
use deftool_process::{confine, kill_programs, lock};

use super::protocol::{GREETING, Reply, Request, WireCall, arguments};
use crate::control::{Answer, Control, Stop};
use crate::events::{ScriptEvent, ScriptSink};
use crate::ffi::share_heap;
use crate::limits::{DEFAULT_MEMORY, STACK_SIZE};
use crate::runner::pool::Pool;
use crate::script::{Script, check_script};

/// Time limit for the end of a running call after the parent has ended.
const LAST_CALL: Duration = Duration::from_millis(100);

/// Makes this process a child of [`Isolation::Processes`](super::Isolation::Processes), and serves its parent until the
/// parent closes the connection.
///
/// The program that `Isolation::Processes` names must call this first in `main`, or after [`set_guard`] if its scripts
/// run programs, and must then return. This process leaves its session, and its stdin and stdout become `/dev/null`.
///
/// [`set_guard`]: deftool_process::set_guard
///
/// # Errors
/// When the pipes cannot be duplicated, or a message is invalid.
pub fn serve_isolated() -> io::Result<()> {
    let (input, output) = take_pipes()?;
    // One thread uses nearly all of the memory.
    share_heap();
    confine::begin_session();
    confine::limit_memory(Some(DEFAULT_MEMORY));
    serve(input, output)
}

#[cfg(unix)]
fn take_pipes() -> io::Result<(File, File)> {
    use std::os::fd::AsFd;
    // The duplicates are closed in programs that this process starts.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok((input, output))
}

#[cfg(not(unix))]
fn take_pipes() -> io::Result<(io::Stdin, io::Stdout)> {
    Ok((io::stdin(), io::stdout()))
}

/// A task for the thread that runs scripts.
enum Task {
    Check(Script),
    Load(u64, Arc<Script>),
    Unload(u64),
    Call(WireCall, Arguments, Arc<Control>),
}

fn serve(mut input: impl Read, output: impl Write + Send + 'static) -> io::Result<()> {
    let output = Arc::new(Mutex::new(output));
    send(&output, &Reply::Ready(String::from(GREETING)), NO_PAYLOAD)?;
    let (tasks, taken) = mpsc::channel();
    let (ended, at_end) = mpsc::channel();
    std::thread::Builder::new().name(String::from("deftool-script")).stack_size(STACK_SIZE).spawn(
        move || {
            let _abort = AbortOnPanic;
            let served = Server::new(output)
                .and_then(|mut server| taken.into_iter().try_for_each(|task| server.perform(task)));
            drop(ended.send(served));
        },
    )?;
    let mut running = Weak::new();
    let forwarded = forward_requests(&mut input, &tasks, &mut running);
    if let Some(control) = running.upgrade() {
        control.stop(Stop::Canceled);
    }
    drop(tasks);
    let served = at_end.recv_timeout(LAST_CALL);
    kill_programs();
    // A script that has not stopped by now is ended by the exit of the process.
    forwarded.and(served.unwrap_or(Ok(())))
}

/// Forwards the requests from `input` to the other thread until the end of `input`.
fn forward_requests(
    input: &mut impl Read,
    tasks: &mpsc::Sender<Task>,
    running: &mut Weak<Control>,
) -> io::Result<()> {
    while let Some(body) = read_frame(input)? {
        let (request, rest) = head::<Request>(&body)?;
        let task = match request {
            Request::Load(number, script) => Task::Load(number, script.into_script()),
            Request::Unload(number) => Task::Unload(number),
            Request::Check(file, source) => Task::Check(Script::new("", file, source.bytes())),
            Request::Call(call) => {
                let control = Control::new(call.timeout, None);
                *running = Arc::downgrade(&control);
                Task::Call(call, arguments(rest)?, control)
            }
            Request::Cancel => {
                if let Some(control) = running.upgrade() {
                    control.stop(Stop::Canceled);
                }
                continue;
            }
        };
        if tasks.send(task).is_err() {
            // The other thread failed to write: the parent has ended.
            break;
        }
    }
    Ok(())
}

/// Guard that aborts the process on a panic, so that the parent detects the panic.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

struct Server<W> {
    output: Arc<Mutex<W>>,
    scripts: HashMap<u64, Arc<Script>>,
    pool: Pool,
    runtime: tokio::runtime::Runtime,
    /// The highest memory limit of the loaded scripts, in bytes. `None`: no limit.
    memory: Option<u64>,
}

impl<W: Write + Send + 'static> Server<W> {
    fn new(output: Arc<Mutex<W>>) -> io::Result<Self> {
        let shared = Arc::clone(&output);
        let sink = ScriptSink::new(move |event| {
            let reply = match event {
                ScriptEvent::Logged { level, text, .. } => Reply::Logged(level, text),
                ScriptEvent::Progressed { fraction, text, .. } => Reply::Progressed(fraction, text),
            };
            // The thread that reads detects that the parent has ended.
            drop(send(&shared, &reply, NO_PAYLOAD));
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(Self {
            output,
            scripts: HashMap::new(),
            pool: Pool::new(sink, DEFAULT_MEMORY),
            runtime,
            memory: Some(DEFAULT_MEMORY),
        })
    }

    fn perform(&mut self, task: Task) -> io::Result<()> {
        match task {
            Task::Check(script) => send(&self.output, &Reply::Checked(check_script(&script)), NO_PAYLOAD),
            Task::Load(number, script) => {
                self.limit(&script);
                // Calls of the script report its errors.
                drop(script.compiled());
                self.scripts.insert(number, script);
                send(&self.output, &Reply::Loaded(number), NO_PAYLOAD)
            }
            Task::Unload(number) => {
                self.scripts.remove(&number);
                self.pool.drop_unused();
                Ok(())
            }
            Task::Call(call, arguments, control) => {
                let context = call.context();
                let meter = context.meter.clone();
                let answer = self.call(&call, &arguments, context, &control);
                if let Some(Usage { load, run, memory }) = meter.and_then(|meter| meter.usage()) {
                    send(&self.output, &Reply::Used(load, run, memory), NO_PAYLOAD)?;
                }
                match answer {
                    Ok(ToolOutput { value, attachments }) => {
                        let coded = attachments.iter().filter_map(Attachment::to_base64).collect();
                        send(&self.output, &Reply::Returned(call.number, coded), Some(&value))
                    }
                    Err(error) => send(&self.output, &Reply::Failed(call.number, error), NO_PAYLOAD),
                }
            }
        }
    }

    fn limit(&mut self, script: &Script) {
        // Programs inherit the limit, so a script that may run programs has none.
        let bound = script.permissions.run.is_empty().then(|| script.memory.unwrap_or(DEFAULT_MEMORY));
        self.memory = self.memory.zip(bound).map(|(known, memory)| known.max(memory));
        confine::limit_memory(self.memory);
    }

    fn call(
        &mut self,
        call: &WireCall,
        arguments: &Arguments,
        context: CallContext,
        control: &Arc<Control>,
    ) -> Answer {
        let Some(script) = self.scripts.get(&call.script) else {
            let message = format!("unknown script number {}", call.script);
            return Err(ToolError::new(ToolErrorKind::Internal, message));
        };
        if let Some(reason) = control.stopped() {
            return Err(control.error(reason));
        }
        let mut vm = self.pool.take(script)?;
        let (answer, reusable) = self.runtime.block_on(vm.call(arguments, context, control));
        if reusable {
            self.pool.give_back(script, vm);
        }
        answer
    }
}

fn send<W: Write>(
    output: &Mutex<W>,
    reply: &Reply,
    payload: Option<&impl serde::Serialize>,
) -> io::Result<()> {
    let mut frame = Vec::new();
    write_frame(&mut frame, reply, payload)?;
    let mut output = lock(output);
    output.write_all(&frame)?;
    output.flush()
}
