//! A server's process as its worker sees it: started under its guard, heard of, ended.

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
use super::plan::{Ending, GuardProgram, News, Plan};

/// How long what the server wrote last may take to be read: its children may hold the pipe for as long as they like.
const LAST_LINES: Duration = Duration::from_millis(250);
/// How long beyond its grace a guard may take to end its server.
const GUARD_LIMIT: Duration = Duration::from_secs(4);

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

async fn read_output(mut output: ChildStderr, logs: Arc<Logs>) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(length @ 1..) = output.read(&mut piece).await {
        logs.feed(piece.get(..length).unwrap_or_default().to_vec());
        // A flood leaves the others their turn.
        tokio::task::consume_budget().await;
    }
    logs.end();
}
