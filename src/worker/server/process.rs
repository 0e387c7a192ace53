//! A server's process as its worker sees it: started under its guard, heard of, ended.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::guard::{Order, Word};
use super::logs::Logs;

/// How long what the server wrote last may take to be read: its children may hold the pipe for as long as they like.
const LAST_LINES: Duration = Duration::from_millis(250);
/// How long beyond its grace a guard may take to end its server.
const GUARD_LIMIT: Duration = Duration::from_secs(4);

/// Which program the guards of managed servers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardProgram {
    /// A program that calls [`guard_server`](super::guard_server) when it is started with `arguments`.
    pub program: PathBuf,
    /// What it is started with.
    pub arguments: Vec<OsString>,
}

impl GuardProgram {
    /// The program that asks, started with `arguments`: the very file that runs now, also if another has taken its
    /// place since.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn this_program(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> std::io::Result<Self> {
        let own = PathBuf::from("/proc/self/exe");
        let program = if own.exists() { own } else { std::env::current_exe()? };
        Ok(Self { program, arguments: arguments.into_iter().map(Into::into).collect() })
    }
}

/// What is started, every placeholder filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) command: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: PathBuf,
    /// How long it has between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
}

/// How a server ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself or by a signal.
    Exited { code: Option<i32>, signal: Option<i32> },
    /// It never began.
    NotStarted(String),
    /// Its guard was lost, and the server was killed.
    Unguarded,
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited { code: Some(code), .. } => write!(f, "ended with exit code {code}"),
            Self::Exited { signal: Some(signal), .. } => match Signal::from_named_raw(*signal) {
                Some(name) => write!(f, "was ended by signal {signal} ({})", name_of(name)),
                None => write!(f, "was ended by signal {signal}"),
            },
            Self::Exited { code: None, signal: None } => f.write_str("ended"),
            Self::NotStarted(why) => write!(f, "cannot be started: {why}"),
            Self::Unguarded => f.write_str("was killed, because the process that guards it was lost"),
        }
    }
}

fn name_of(signal: Signal) -> String {
    let name = format!("{signal:?}");
    format!("SIG{}", name.trim_matches('"').trim_start_matches("Signal::").to_uppercase())
}

/// A server that was started. Dropped, it is ended by its guard.
#[derive(Debug)]
pub(super) struct Process {
    guard: Child,
    /// Closed, it is the server's end.
    lifeline: Option<ChildStdin>,
    words: Lines<BufReader<ChildStdout>>,
    output: Option<JoinHandle<()>>,
    grace: Duration,
    /// The server's process and group.
    id: Option<u32>,
    ended: Option<Ending>,
    failed: Option<String>,
}

impl Process {
    /// Starts `plan` under a guard; its output goes to `logs`. Whether the program itself could be started is
    /// told by its [`ending`](Process::ended).
    ///
    /// # Errors
    /// When the guard cannot be started, or there is no such folder; in a clause.
    pub(super) async fn start(plan: &Plan, program: &GuardProgram, logs: Arc<Logs>) -> Result<Self, String> {
        if !plan.cwd.is_dir() {
            return Err(format!(
                "there is no folder {} to start it in (the server's :cwd)",
                plan.cwd.display()
            ));
        }
        let failed = |error: std::io::Error| {
            format!(
                "the process that guards the server, {}, cannot be started: {error}",
                program.program.display()
            )
        };
        let mut command = Command::new(&program.program);
        command.args(&program.arguments).current_dir(&plan.cwd);
        command.envs(plan.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut guard = command.spawn().map_err(failed)?;
        let (Some(mut lifeline), Some(words), Some(output)) =
            (guard.stdin.take(), guard.stdout.take(), guard.stderr.take())
        else {
            return Err(failed(std::io::Error::other("it has no pipes")));
        };
        let grace_ms = plan.grace.as_millis() as u64;
        let order = Order::Guard { command: plan.command.clone(), grace_ms };
        let mut line = serde_json::to_vec(&order).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        lifeline.write_all(&line).await.map_err(failed)?;
        Ok(Self {
            guard,
            lifeline: Some(lifeline),
            words: BufReader::new(words).lines(),
            output: Some(tokio::spawn(read_output(output, logs))),
            grace: plan.grace,
            id: None,
            ended: None,
            failed: None,
        })
    }

    /// The server's process number, which is its group's, once it is told.
    pub(super) fn id(&self) -> Option<u32> {
        self.id
    }

    /// Waits for news: the server's number, or its end. Dropping the wait loses nothing.
    pub(super) async fn news(&mut self) -> News {
        loop {
            if let Some(ending) = &self.ended {
                return News::Ended(ending.clone());
            }
            let word = match self.words.next_line().await {
                Ok(Some(line)) => serde_json::from_str(&line).ok(),
                Ok(None) | Err(_) => None,
            };
            match word {
                Some(Word::Started(id)) => {
                    self.id = u32::try_from(id).ok();
                    return News::Started;
                }
                // Its process has ended, or ends at once: that is waited for.
                Some(Word::Failed(why)) => self.failed = Some(why),
                Some(Word::Exited { code, signal }) => {
                    let ending = Ending::Exited { code, signal };
                    let why = self.failed.take();
                    self.end(why.map_or(ending, Ending::NotStarted)).await;
                }
                None => {
                    let why = self.failed.take();
                    if why.is_none() {
                        self.kill_group();
                    }
                    self.end(why.map_or(Ending::Unguarded, Ending::NotStarted)).await;
                }
            }
        }
    }

    async fn end(&mut self, ending: Ending) {
        self.ended = Some(ending);
        if let Some(output) = self.output.take() {
            let _ = timeout(LAST_LINES, output).await;
        }
    }

    /// Ends the server: SIGTERM, its grace, SIGKILL, to its whole group.
    pub(super) async fn stop(mut self) -> Ending {
        drop(self.lifeline.take());
        let limit = self.grace.saturating_add(GUARD_LIMIT);
        let ended = async {
            loop {
                if let News::Ended(ending) = self.news().await {
                    break ending;
                }
            }
        };
        if let Ok(ending) = timeout(limit, ended).await {
            // The guard has nothing left to do.
            let _ = timeout(GUARD_LIMIT, self.guard.wait()).await;
            return ending;
        }
        // A guard that is stopped, for one.
        self.kill_group();
        let _ = self.guard.kill().await;
        Ending::Unguarded
    }

    fn kill_group(&self) {
        let group = self.id.and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// What a server's guard tells.
#[derive(Debug)]
pub(super) enum News {
    /// The server has a number.
    Started,
    /// The server ended.
    Ended(Ending),
}

async fn read_output(mut output: ChildStderr, logs: Arc<Logs>) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(length @ 1..) = output.read(&mut piece).await {
        logs.feed(piece.get(..length).unwrap_or_default().to_vec());
        // A flood leaves the others their turn.
        tokio::task::consume_budget().await;
    }
    logs.end();
}
