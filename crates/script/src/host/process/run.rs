//! Runs a program: starts it, feeds its input, collects its output and waits for its exit.

use std::os::unix::process::ExitStatusExt as _;
use std::pin::pin;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use deftool_lang::tool::ToolErrorKind;
use deftool_process::{Child, KillHandle, LaunchPlan, Supervision};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until, timeout};

use super::program::ProgramGrants;
use crate::control::CallResource;
use crate::error::{HostError, clean};

/// Time limit for reading the remaining output of a program that has exited.
const PIPE_TIMEOUT: Duration = Duration::from_millis(250);

impl CallResource for KillHandle {
    fn abort(&self) {
        self.kill();
    }
}

/// The parameters of `process.run`.
pub(super) struct RunRequest {
    pub(super) argv: Vec<String>,
    pub(super) stdin: Option<Vec<u8>>,
    pub(super) cwd: Option<String>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) timeout: Option<Duration>,
    /// Maximum number of bytes to keep of each stream.
    pub(super) max_output: usize,
}

/// The result of a run.
pub(super) struct RunResult {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) timed_out: bool,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
}

/// Runs a program until it exits. Dropping the future or aborting `kill_handle` kills the program.
pub(super) async fn run(
    grants: Arc<ProgramGrants>,
    request: RunRequest,
    kill_handle: Arc<KillHandle>,
) -> Result<RunResult, HostError> {
    let RunRequest { argv, stdin, cwd, variables, timeout: limit, max_output } = request;
    let name = argv.first().cloned().unwrap_or_default();
    let has_input = stdin.is_some();
    let prepare = move || prepare(&grants, &argv, cwd.as_deref(), variables, has_input);
    let failed = |error: &std::io::Error| program_error(&name, error);
    let mut child = Child::start(kill_handle, prepare).await.map_err(|error| match error {
        StartError::Host(error) => error,
        StartError::Io(error) => failed(&error),
    })?;
    let (input, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut stdout, mut stderr) = (Output::new(max_output), Output::new(max_output));

    let mut timed_out = false;
    let status = {
        let feed = async {
            if let Some(mut input) = input {
                // The program may ignore its input.
                let _ = input.write_all(&stdin.unwrap_or_default()).await;
            }
        };
        let read_out = async {
            if let Some(out) = out {
                stdout.fill(out).await;
            }
        };
        let read_err = async {
            if let Some(err) = err {
                stderr.fill(err).await;
            }
        };
        let mut pipes = pin!(async { tokio::join!(feed, read_out, read_err) });
        let mut are_closed = false;
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut is_late = pin!(async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        });
        let ended = loop {
            tokio::select! {
                ended = child.wait() => break ended,
                _ = &mut pipes, if !are_closed => are_closed = true,
                () = &mut is_late, if !timed_out => {
                    timed_out = true;
                    child.kill();
                }
            }
        };
        if !are_closed {
            // A process that escaped the guard could keep the pipes open indefinitely.
            let _ = timeout(PIPE_TIMEOUT, pipes).await;
        }
        ended
    };
    let status = status.map_err(|error| failed(&error))?;
    Ok(RunResult { code: status.code(), signal: status.signal(), timed_out, stdout, stderr })
}

/// A program was not started.
pub(super) enum StartError {
    Host(HostError),
    Io(std::io::Error),
}

impl From<std::io::Error> for StartError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

pub(super) fn prepare(
    grants: &ProgramGrants,
    argv: &[String],
    cwd: Option<&str>,
    variables: Vec<(String, String)>,
    has_input: bool,
) -> Result<LaunchPlan, StartError> {
    let (name, arguments) =
        argv.split_first().ok_or_else(|| std::io::Error::other("missing program name"))?;
    let program = grants.find(name).map_err(StartError::Host)?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(grants.variables()).envs(variables);
    let folder = grants.folder(cwd).map_err(StartError::Host)?;
    let name = name.clone();
    Ok(LaunchPlan {
        command,
        name,
        folder,
        has_input,
        merges_output: false,
        supervision: Supervision::Confined,
    })
}

fn program_error(name: &str, error: &std::io::Error) -> HostError {
    let error = error.to_string();
    let message = error.split(" (os error").next().unwrap_or_default();
    HostError { kind: ToolErrorKind::Script, message: format!("{}: {message}", clean(name, 200)) }
}

/// The output of one stream.
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    /// Whether bytes beyond the limit were discarded.
    pub(super) truncated: bool,
    limit: usize,
}

impl Output {
    /// Creates an empty output that keeps at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), truncated: false, limit }
    }

    /// Reads `stream` to its end. Bytes beyond the limit are read and discarded, because a program that cannot write
    /// would behave differently.
    pub(super) async fn fill(&mut self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 16 << 10];
        // A read error counts as the end.
        while let Ok(read) = stream.read(&mut buffer).await {
            if read == 0 {
                return;
            }
            let room = self.limit.saturating_sub(self.bytes.len());
            let kept = buffer.get(..read.min(room)).unwrap_or_default();
            self.bytes.extend_from_slice(kept);
            self.truncated |= kept.len() < read;
        }
    }
}
