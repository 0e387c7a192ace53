//! A server process from the worker's side: starts it under its guard, receives its events, ends it.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use deftool_process::{Child, KillHandle, LaunchPlan, Supervision};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStdout;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::logs::Logs;
use super::plan::{Plan, ProcessEvent, Termination};

/// Time limit for reading the last output of an ended server: its children may keep the pipe open.
const LAST_LINES: Duration = Duration::from_secs(1);
/// Time limit for the end of a server and its guard, in addition to the grace period.
const END_LIMIT: Duration = Duration::from_secs(6);

/// A started server. On drop, its guard ends it.
pub(super) struct Process {
    phase: Phase,
    kill_handle: Arc<KillHandle>,
    logs: Arc<Logs>,
    output: Option<JoinHandle<()>>,
    grace: Duration,
    /// ID of the server's process and group.
    id: Option<u32>,
}

enum Phase {
    Starting(BoxFuture<'static, io::Result<Child>>),
    Started(Child),
    /// The termination of the server and its time.
    Ended(Termination, Instant),
}

impl Process {
    /// Starts `plan` under a guard; its output goes to `logs`. A program that cannot be started is reported by
    /// [`Process::next_event`].
    ///
    /// # Errors
    /// When the working directory does not exist, as a clause.
    pub(super) fn start(plan: Plan, logs: Arc<Logs>) -> Result<Self, String> {
        if !plan.cwd.is_dir() {
            return Err(format!(
                "working directory `{}` does not exist (the server's `:cwd`)",
                plan.cwd.display()
            ));
        }
        let (grace, kill_handle) = (plan.grace, Arc::default());
        let starting = Child::start(Arc::clone(&kill_handle), move || launch_plan(plan)).boxed();
        Ok(Self { phase: Phase::Starting(starting), kill_handle, logs, output: None, grace, id: None })
    }

    /// Returns the id of the server's process and group, once it runs.
    pub(super) fn id(&self) -> Option<u32> {
        self.id
    }

    /// Waits for the next event: the start or the end of the server. Cancel safe.
    pub(super) async fn next_event(&mut self) -> ProcessEvent {
        loop {
            let ending = match &mut self.phase {
                Phase::Starting(starting) => match starting.await {
                    Ok(child) => {
                        self.begin(child);
                        return ProcessEvent::Started;
                    }
                    Err(error) => Termination::NotStarted(describe(&error)),
                },
                Phase::Started(child) => match child.wait().await {
                    Ok(status) => Termination::Exited { code: status.code(), signal: status.signal() },
                    Err(_) => Termination::GuardLost,
                },
                Phase::Ended(ending, at) => {
                    if let Some(output) = &mut self.output {
                        let _ = timeout_at(*at + LAST_LINES, output).await;
                        self.output = None;
                    }
                    return ProcessEvent::Ended(ending.clone());
                }
            };
            self.phase = Phase::Ended(ending, Instant::now());
        }
    }

    fn begin(&mut self, mut child: Child) {
        let output = child.stdout.take();
        self.output = output.map(|output| tokio::spawn(read_output(output, Arc::clone(&self.logs))));
        self.id = Some(child.id);
        self.phase = Phase::Started(child);
    }

    /// Ends the server: SIGTERM to its group, then SIGKILL after the grace period.
    pub(super) async fn stop(mut self) -> Termination {
        self.kill_handle.kill();
        let limit = self.grace.saturating_add(END_LIMIT);
        let ended = async {
            loop {
                if let ProcessEvent::Ended(ending) = self.next_event().await {
                    break ending;
                }
            }
        };
        timeout(limit, ended).await.unwrap_or(Termination::GuardLost)
    }
}

fn launch_plan(plan: Plan) -> io::Result<LaunchPlan> {
    let Some((name, arguments)) = plan.command.split_first() else {
        return Err(io::Error::other("the command is empty"));
    };
    let mut command = Command::new(name);
    command.args(arguments).env_clear().envs(std::env::vars_os()).envs(plan.env);
    Ok(LaunchPlan {
        command,
        name: name.clone(),
        folder: plan.cwd,
        has_input: false,
        merges_output: true,
        supervision: Supervision::Server { grace: plan.grace },
    })
}

/// Returns the text of a system error without its number.
fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

async fn read_output(mut output: ChildStdout, logs: Arc<Logs>) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(length @ 1..) = output.read(&mut piece).await {
        logs.feed(piece.get(..length).unwrap_or_default().to_vec());
        // Yields to other tasks even if output never pauses.
        tokio::task::consume_budget().await;
    }
    logs.end();
}
