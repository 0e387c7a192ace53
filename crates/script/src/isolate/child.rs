//! The parent's side of a child process: starts it, exchanges messages with it and ends it.
//!
//! The parent validates all lengths, numbers and texts that a child sends, and kills a child that violates the
//! protocol. So a child can affect only the call that it runs.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Weak};
use std::time::Duration;

use deftool_lang::tool::{Attachment, ToolCall, ToolError, ToolErrorKind, ToolOutput, Usage, attach};
use deftool_process::HelperProgram;
use deftool_process::frame::{NO_PAYLOAD, frame_length, head, invalid, write_frame};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

use super::protocol::{GREETING, Reply, Request, START_LIMIT, WireCall, WireScript};
use crate::control::{Answer, grace, timed_out};
use crate::error::clean;
use crate::events::{ScriptEvent, ScriptSink};
use crate::limits::{CHILD_COMPILE_LIMIT, MAX_EVENTS, MAX_LINE};
use crate::path::home_variables;
use crate::permission::ScriptPermissions;
use crate::script::Script;
use crate::script::contract::{Contract, LoadError, compile_timeout};

/// Time from the cancellation of a call to the kill of its process. The caller does not wait for it.
const CANCEL_LIMIT: Duration = Duration::from_millis(500);
/// Time limit for the end of a process that has closed its pipes.
const DEATH_LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of messages that a call may send in addition to its answer: its log and progress lines, and a few
/// others.
const MAX_REPLIES: u32 = MAX_EVENTS + 10;

/// Maximum capacity of the output buffer that is kept between calls, in bytes.
const MAX_BUFFER: usize = 1 << 16;

/// Environment variables that every child has, in addition to those of the user's folders: the locations of the time zone,
/// temporary files and root certificates.
const ALWAYS: [&str; 4] = ["TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"];
/// Environment variable of children with scripts that may run programs.
const FOR_PROGRAMS: &str = "PATH";

/// The properties of a child. A child serves all scripts that require the same properties.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Kind {
    /// The complete environment.
    pub(super) environment: BTreeMap<OsString, OsString>,
    /// Whether the scripts may run programs.
    pub(super) runs: bool,
}

impl Kind {
    /// Returns the properties of a child that can run scripts with `permissions`.
    pub(super) fn of(permissions: &ScriptPermissions) -> Self {
        let runs = !permissions.run.is_empty();
        let given = ALWAYS.into_iter().chain(home_variables()).chain(runs.then_some(FOR_PROGRAMS));
        let named = permissions.env.iter().map(String::as_str).filter(|name| !name.contains(['=', '\0']));
        let environment = given
            .chain(named)
            .filter(|name| !name.is_empty())
            .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
            .collect();
        Self { environment, runs }
    }
}

/// A call to send.
pub(super) struct Job {
    pub(super) script: Arc<Script>,
    /// The script's number, which does not change while the script is in use.
    pub(super) script_number: u64,
    pub(super) call: ToolCall,
    pub(super) context: deftool_lang::tool::CallContext,
    pub(super) timeout: Duration,
    /// The memory limit of scripts without their own limit, in bytes.
    pub(super) memory: u64,
}

/// A child process that runs one call at a time.
pub(super) struct Child {
    pub(super) kind: Arc<Kind>,
    process: tokio::process::Child,
    input: ChildStdin,
    output: Output,
    /// The scripts that the child holds, by number.
    scripts: HashMap<u64, Weak<Script>>,
    calls: u64,
}

/// The outcome of an exchange.
enum Ended {
    /// The child answered and can run another call.
    Answered(Answer),
    /// The child must be killed, and the call ends with this error.
    Broken(ToolError),
    /// The child closed its pipe.
    Gone,
}

impl Child {
    /// Starts a child of `kind`.
    ///
    /// # Errors
    /// When the program does not start, or is not a script host.
    pub(super) async fn start(options: &HelperProgram, kind: Arc<Kind>) -> Result<Self, ToolError> {
        let failed = |problem: String| {
            let program = options.program.display();
            let message = format!("the script host `{program}` {problem}");
            ToolError::new(ToolErrorKind::Internal, clean(&message, 2 * MAX_LINE))
        };
        let mut command = Command::new(&options.program);
        command.args(&options.arguments).env_clear().envs(&kind.environment).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(|error| failed(format!("cannot be started: {error}")))?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(failed(String::from("has no pipes")));
        };
        let output = Output { pipe: output, buffer: Vec::new(), used: 0 };
        let mut child = Self { kind, process, input, output, scripts: HashMap::new(), calls: 0 };
        let problem = match timeout(START_LIMIT, child.output.reply()).await {
            Ok(Ok(Some((Reply::Ready(greeting), _)))) if greeting == GREETING => return Ok(child),
            Ok(Ok(Some((Reply::Ready(greeting), _)))) => {
                format!("has a different version: expected {GREETING:?}, found {:?}", clean(&greeting, 80))
            }
            Ok(Ok(None)) => match child.status().await {
                Some(status) => format!("exited immediately ({})", cause(status)),
                None => String::from("closed its output immediately"),
            },
            Ok(Ok(Some(_)) | Err(_)) => {
                String::from("is not a script host: it must call `script::serve_isolated`")
            }
            Err(_) => format!("did not respond within {} s", START_LIMIT.as_secs()),
        };
        child.kill().await;
        Err(failed(problem))
    }

    /// Sends `request`, a [`Request::Check`], and returns the answer, or `None` when it takes too long: the child is then
    /// still busy.
    ///
    /// # Errors
    /// When the child has ended or its answer is invalid.
    pub(super) async fn check(
        &mut self,
        request: &Request,
    ) -> io::Result<Option<Result<Contract, LoadError>>> {
        let mut frame = Vec::new();
        write_frame(&mut frame, request, NO_PAYLOAD)?;
        let answer = async {
            self.input.write_all(&frame).await?;
            self.output.reply().await
        };
        match timeout(CHILD_COMPILE_LIMIT, answer).await {
            Ok(Ok(Some((Reply::Checked(contract), _)))) => Ok(Some(contract)),
            Ok(Ok(Some(_))) => Err(invalid(String::from("unexpected message"))),
            Ok(Ok(None)) => Err(io::Error::other("the process exited")),
            Ok(Err(error)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Returns whether the process still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Runs `job` until it ends, or until `stopped` completes. Returns the answer, and whether the child can run
    /// another call.
    pub(super) async fn call(
        &mut self,
        job: &Job,
        sink: &ScriptSink,
        stopped: impl Future<Output = ()>,
    ) -> (Answer, bool) {
        match self.exchange(job, sink, stopped).await {
            Ended::Answered(answer) => (answer, true),
            Ended::Broken(error) => (Err(error), false),
            Ended::Gone => {
                let how = match self.status().await {
                    Some(status) => format!("died ({})", cause(status)),
                    None => String::from("closed its output and was killed"),
                };
                let message = format!(
                    "the process that ran the script {how}; the engine and other calls are not affected"
                );
                (Err(ToolError::new(ToolErrorKind::Internal, message)), false)
            }
        }
    }

    async fn exchange(&mut self, job: &Job, sink: &ScriptSink, stopped: impl Future<Output = ()>) -> Ended {
        let (requests, mut is_loaded) = match self.requests(job) {
            Ok(requests) => requests,
            Err(error) => {
                let message = format!("the call cannot be sent to its process: {error}");
                return Ended::Broken(ToolError::new(ToolErrorKind::Internal, message));
            }
        };
        let mut stopped = std::pin::pin!(stopped);
        let mut canceled = false;
        let limit = job.timeout.saturating_add(grace(job.timeout));
        let mut clock = std::pin::pin!(sleep(if is_loaded { limit } else { CHILD_COMPILE_LIMIT }));
        tokio::select! {
            written = self.input.write_all(&requests) => if written.is_err() { return Ended::Gone },
            () = &mut stopped => return Ended::Broken(canceled_error()),
            () = &mut clock => return Ended::Broken(timed_out(job.timeout)),
        }
        let mut replies = 0;
        loop {
            let received = tokio::select! {
                received = self.output.reply() => received,
                () = &mut stopped, if !canceled => {
                    canceled = true;
                    clock.as_mut().reset(Instant::now() + CANCEL_LIMIT);
                    let mut cancel = Vec::new();
                    let sent = write_frame(&mut cancel, &Request::Cancel, NO_PAYLOAD);
                    // The pipe is empty: the child has read all previous messages.
                    if sent.is_err() || !matches!(timeout(CANCEL_LIMIT, self.input.write_all(&cancel)).await, Ok(Ok(()))) {
                        return Ended::Broken(canceled_error());
                    }
                    continue;
                }
                () = &mut clock => return Ended::Broken(match (canceled, is_loaded) {
                    (true, _) => canceled_error(),
                    (false, true) => timed_out(job.timeout),
                    (false, false) => compile_timeout(&job.script.file).into_tool_error(),
                }),
            };
            let (reply, result) = match received {
                Ok(Some(received)) => received,
                Ok(None) => return Ended::Gone,
                Err(error) => return Ended::Broken(invalid_reply(&error)),
            };
            replies += 1;
            match reply {
                Reply::Loaded(number) if !is_loaded && number == job.script_number => {
                    is_loaded = true;
                    if !canceled {
                        clock.as_mut().reset(Instant::now() + limit);
                    }
                }
                Reply::Logged(level, text) if is_loaded && replies < MAX_REPLIES => {
                    sink.send(ScriptEvent::Logged {
                        tool: job.script.tool.clone(),
                        request_id: job.context.request_id.clone(),
                        call_id: job.context.call_id.clone(),
                        level,
                        text: clean(&text, MAX_LINE),
                    });
                }
                Reply::Progressed(fraction, text) if is_loaded && replies < MAX_REPLIES => {
                    sink.send(ScriptEvent::Progressed {
                        tool: job.script.tool.clone(),
                        request_id: job.context.request_id.clone(),
                        call_id: job.context.call_id.clone(),
                        fraction: fraction.map(|fraction| fraction.clamp(0.0, 1.0)),
                        text: clean(&text, MAX_LINE),
                    });
                }
                Reply::Used(load, run, memory) if is_loaded && replies < MAX_REPLIES => {
                    if let Some(meter) = &job.context.meter {
                        meter.record(Usage { load, run, memory });
                    }
                }
                Reply::Returned(number, coded) if is_loaded && number == self.calls => {
                    return match serde_json::from_slice::<Value>(&result) {
                        Ok(value) => Ended::Answered(Ok(output_of(value, &coded))),
                        Err(error) => Ended::Broken(invalid_reply(&error.into())),
                    };
                }
                Reply::Failed(number, error) if is_loaded && number == self.calls => {
                    return Ended::Answered(Err(cleaned(error)));
                }
                _ => {
                    return Ended::Broken(invalid_reply(&invalid(String::from("unexpected message"))));
                }
            }
        }
    }

    /// Returns the frames of a call: the scripts to unload, the script if the child does not hold it yet, and the call.
    /// The flag is `true` if the child holds the script.
    fn requests(&mut self, job: &Job) -> io::Result<(Vec<u8>, bool)> {
        let mut frames = Vec::new();
        let unloaded = self.scripts.extract_if(|_, script| script.strong_count() == 0);
        for (number, _) in unloaded {
            write_frame(&mut frames, &Request::Unload(number), NO_PAYLOAD)?;
        }
        let is_loaded = self.scripts.contains_key(&job.script_number);
        if !is_loaded {
            let script = Box::new(WireScript::of(&job.script, job.memory));
            write_frame(&mut frames, &Request::Load(job.script_number, script), NO_PAYLOAD)?;
            self.scripts.insert(job.script_number, Arc::downgrade(&job.script));
        }
        self.calls += 1;
        let call = WireCall {
            number: self.calls,
            script: job.script_number,
            timeout: job.timeout,
            request_id: job.context.request_id.clone(),
            job_name: job.context.job_name.clone(),
            worker: job.context.worker.clone(),
            idempotency_key: job.context.idempotency_key.clone(),
            effect: job.context.effect,
            trace: job.context.trace.clone(),
            is_metered: job.context.meter.is_some(),
        };
        write_frame(&mut frames, &Request::Call(call), Some(&job.call.arguments))?;
        Ok((frames, is_loaded))
    }

    /// Returns the exit status, or `None` if the process does not end in time.
    async fn status(&mut self) -> Option<ExitStatus> {
        timeout(DEATH_LIMIT, self.process.wait()).await.ok()?.ok()
    }

    /// Kills the process and waits for its end. The guards of its programs detect that it is gone.
    pub(super) async fn kill(mut self) {
        drop(self.process.start_kill());
        drop(timeout(DEATH_LIMIT, self.process.wait()).await);
    }

    /// Closes the input of an idle child, which then exits.
    pub(super) async fn shut_down(self) {
        let Self { mut process, input, .. } = self;
        drop(input);
        if timeout(DEATH_LIMIT, process.wait()).await.is_err() {
            drop(process.kill().await);
        }
    }
}

/// The output of a child, frame by frame. Reads are cancel safe.
struct Output {
    pipe: ChildStdout,
    buffer: Vec<u8>,
    /// Number of bytes of `buffer` that were returned.
    used: usize,
}

impl Output {
    /// Reads the next message and its payload. Returns `None` at the end of the output.
    async fn reply(&mut self) -> io::Result<Option<(Reply, Vec<u8>)>> {
        self.buffer.drain(..std::mem::take(&mut self.used));
        self.buffer.shrink_to(MAX_BUFFER);
        loop {
            if let Some((prefix, rest)) = self.buffer.split_first_chunk::<4>() {
                let length = frame_length(*prefix)?;
                if let Some(body) = rest.get(..length) {
                    self.used = 4 + length;
                    let (reply, rest) = head::<Reply>(body)?;
                    return Ok(Some((reply, rest.to_vec())));
                }
            }
            // A process may die in the middle of a message.
            if self.pipe.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

fn invalid_reply(error: &io::Error) -> ToolError {
    let message = format!(
        "the process that ran the script was killed because it sent an invalid message: {}",
        clean(&error.to_string(), 200)
    );
    ToolError::new(ToolErrorKind::Internal, message)
}

fn canceled_error() -> ToolError {
    ToolError::new(ToolErrorKind::Canceled, "the call was cancelled")
}

/// Returns a result that a child sent. What is not an attachment is left out.
fn output_of(value: Value, coded: &[String]) -> ToolOutput {
    let mut attachments = Vec::new();
    for coded in coded {
        attach(&mut attachments, Attachment::from_base64(coded, ""));
    }
    ToolOutput { value, attachments }
}

/// Limits and cleans the texts of an error that a child sent.
fn cleaned(error: ToolError) -> ToolError {
    let most = 4 * MAX_LINE;
    ToolError {
        kind: error.kind,
        message: clean(&error.message, most),
        path: error.path.map(|path| clean(&path, most)),
        details: error.details.map(|details| clean(&details, most)),
    }
}

fn cause(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}
