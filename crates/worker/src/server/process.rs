//! A server process from the worker's side: starts it under its guard, receives its events, ends it.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::guard::{GuardReport, GuardRequest};
use super::logs::Logs;
use super::plan::{GuardProgram, Plan, ProcessEvent, Termination};

/// Time limit for reading the last output of an ended server: its children may keep the pipe open.
const LAST_LINES: Duration = Duration::from_secs(1);
/// Time limit for a guard to end its server, in addition to the grace period.
const GUARD_LIMIT: Duration = Duration::from_secs(4);

/// A started server. On drop, its guard ends it.
#[derive(Debug)]
pub(super) struct Process {
    guard: Child,
    /// The guard ends the server when this pipe is closed.
    lifeline: Option<ChildStdin>,
    reports: Lines<BufReader<ChildStdout>>,
    output: Option<JoinHandle<()>>,
    grace: Duration,
    /// Id of the server's process and group.
    id: Option<u32>,
    /// The termination of the server and its time.
    ended: Option<(Termination, Instant)>,
    failed: Option<String>,
}

impl Process {
    /// Starts `plan` under a guard; its output goes to `logs`. A program that cannot be started is reported by
    /// [`Process::next_event`].
    ///
    /// # Errors
    /// When the guard cannot be started or the working directory does not exist, as a clause.
    pub(super) async fn start(plan: &Plan, program: &GuardProgram, logs: Arc<Logs>) -> Result<Self, String> {
        if !plan.cwd.is_dir() {
            return Err(format!(
                "working directory `{}` does not exist (the server's `:cwd`)",
                plan.cwd.display()
            ));
        }
        let failed = |error: std::io::Error| {
            format!("cannot start the guard process `{}` of the server: {error}", program.program.display())
        };
        let mut command = Command::new(&program.program);
        command.args(&program.arguments).current_dir(&plan.cwd);
        command.envs(plan.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut guard = command.spawn().map_err(failed)?;
        let (Some(mut lifeline), Some(reports), Some(output)) =
            (guard.stdin.take(), guard.stdout.take(), guard.stderr.take())
        else {
            return Err(failed(std::io::Error::other("missing stdio pipes")));
        };
        let grace_ms = plan.grace.as_millis() as u64;
        let request = GuardRequest::Guard { command: plan.command.clone(), grace_ms };
        let mut line = serde_json::to_vec(&request).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        lifeline.write_all(&line).await.map_err(failed)?;
        Ok(Self {
            guard,
            lifeline: Some(lifeline),
            reports: BufReader::new(reports).lines(),
            output: Some(tokio::spawn(read_output(output, logs))),
            grace: plan.grace,
            id: None,
            ended: None,
            failed: None,
        })
    }

    /// Returns the id of the server's process and group, once the guard has reported it.
    pub(super) fn id(&self) -> Option<u32> {
        self.id
    }

    /// Waits for the next event: the start or the end of the server. Cancel safe.
    pub(super) async fn next_event(&mut self) -> ProcessEvent {
        loop {
            if let Some((ending, at)) = &self.ended {
                if let Some(output) = &mut self.output {
                    let _ = timeout_at(*at + LAST_LINES, output).await;
                    self.output = None;
                }
                return ProcessEvent::Ended(ending.clone());
            }
            let report = match self.reports.next_line().await {
                Ok(Some(line)) => serde_json::from_str(&line).ok(),
                Ok(None) | Err(_) => None,
            };
            match report {
                Some(GuardReport::Started(id)) => {
                    self.id = u32::try_from(id).ok();
                    return ProcessEvent::Started;
                }
                // The process exits at once. Its exit is reported next.
                Some(GuardReport::Failed(why)) => self.failed = Some(why),
                Some(GuardReport::Exited { code, signal }) => {
                    let ending = Termination::Exited { code, signal };
                    let why = self.failed.take();
                    self.end(why.map_or(ending, Termination::NotStarted));
                }
                None => {
                    let why = self.failed.take();
                    if why.is_none() {
                        self.kill_group();
                    }
                    self.end(why.map_or(Termination::GuardLost, Termination::NotStarted));
                }
            }
        }
    }

    fn end(&mut self, ending: Termination) {
        self.ended = Some((ending, Instant::now()));
    }

    /// Ends the server: SIGTERM to its group, then SIGKILL after the grace period.
    pub(super) async fn stop(mut self) -> Termination {
        drop(self.lifeline.take());
        let limit = self.grace.saturating_add(GUARD_LIMIT);
        let ended = async {
            loop {
                if let ProcessEvent::Ended(ending) = self.next_event().await {
                    break ending;
                }
            }
        };
        if let Ok(ending) = timeout(limit, ended).await {
            // The guard exits next.
            let _ = timeout(GUARD_LIMIT, self.guard.wait()).await;
            return ending;
        }
        // The guard does not respond: it may be stopped.
        self.kill_group();
        let _ = self.guard.kill().await;
        Termination::GuardLost
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
        // Yields to other tasks even if output never pauses.
        tokio::task::consume_budget().await;
    }
    logs.end();
}
