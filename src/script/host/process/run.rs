//! One run of a program, from its start to what it wrote.

use std::os::unix::process::ExitStatusExt as _;
use std::pin::pin;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until, timeout};

use super::child::{Child, Plan, Rein};
use super::output::Output;
use super::program::Grants;
use crate::script::error::{HostError, clean};
use crate::tool::ToolErrorKind;

/// How long the pipes of a program that has ended may take to be read to their ends.
const GRACE: Duration = Duration::from_millis(250);

/// What is to be run.
pub(super) struct Order {
    pub(super) argv: Vec<String>,
    pub(super) stdin: Option<Vec<u8>>,
    pub(super) cwd: Option<String>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) timeout: Option<Duration>,
    /// Most bytes that are kept of each stream.
    pub(super) max_output: usize,
}

/// How it ended.
pub(super) struct Finished {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) timed_out: bool,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
}

/// Runs `order` to its end; dropped before, or with `rein` pulled, it kills the program.
pub(super) async fn run(grants: Arc<Grants>, order: Order, rein: Arc<Rein>) -> Result<Finished, HostError> {
    let Order { argv, stdin, cwd, variables, timeout: limit, max_output } = order;
    let name = argv.first().cloned().unwrap_or_default();
    let has_input = stdin.is_some();
    let prepare = move || prepare(&grants, &argv, cwd.as_deref(), variables, has_input);
    let failed = |error: &std::io::Error| wrong(&name, error);
    let mut child = Child::start(rein, prepare).await.map_err(|refusal| match refusal {
        Refusal::Told(error) => error,
        Refusal::Io(error) => failed(&error),
    })?;
    let input = child.stdin.take().map(ChildStdin::from_std).transpose().map_err(|error| failed(&error))?;
    let out = child.stdout.take().map(ChildStdout::from_std).transpose().map_err(|error| failed(&error))?;
    let err = child.stderr.take().map(ChildStderr::from_std).transpose().map_err(|error| failed(&error))?;
    let (mut stdout, mut stderr) = (Output::new(max_output), Output::new(max_output));

    let mut timed_out = false;
    let status = {
        let feed = async {
            if let Some(mut input) = input {
                // A program need not read what it is given.
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
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut is_late = pin!(async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        });
        let ended = loop {
            tokio::select! {
                ended = &mut child.ended => break ended,
                _ = &mut pipes, if !are_closed => are_closed = true,
                () = &mut is_late, if !timed_out => {
                    timed_out = true;
                    child.kill();
                }
            }
        };
        if !are_closed {
            // Where something is out of the guard's reach, it keeps the pipes open for as long as it likes.
            let _ = timeout(GRACE, pipes).await;
        }
        ended
    };
    let status: ExitStatus = match status {
        Ok(status) => status.map_err(|error| failed(&error))?,
        Err(_) => return Err(failed(&std::io::Error::other("the thread that waits for it was lost"))),
    };
    Ok(Finished { code: status.code(), signal: status.signal(), timed_out, stdout, stderr })
}

enum Refusal {
    Told(HostError),
    Io(std::io::Error),
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

fn prepare(
    grants: &Grants,
    argv: &[String],
    cwd: Option<&str>,
    variables: Vec<(String, String)>,
    has_input: bool,
) -> Result<Plan, Refusal> {
    let (name, arguments) = argv.split_first().ok_or_else(|| std::io::Error::other("it has no name"))?;
    let program = grants.find(name).map_err(Refusal::Told)?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(grants.variables()).envs(variables);
    let folder = grants.folder(cwd).map_err(Refusal::Told)?;
    Ok(Plan { command, name: name.clone(), folder, has_input })
}

fn wrong(name: &str, error: &std::io::Error) -> HostError {
    let error = error.to_string();
    let said = error.split(" (os error").next().unwrap_or_default();
    HostError { kind: ToolErrorKind::Script, message: format!("{}: {said}", clean(name, 200)) }
}
