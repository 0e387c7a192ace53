//! A program that serves on its standard streams, such as an MCP server. It runs under the same guard as the programs
//! of scripts.

use std::io::{Error, Result};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::child::{Child, KillHandle};
use super::program::ProgramGrants;
use super::run::{StartError, prepare};

/// A program that was started with pipes for its standard streams. Dropping it kills the program and all processes that
/// it started.
pub struct StreamProgram {
    /// Its stdin.
    pub stdin: Option<ChildStdin>,
    /// Its stdout.
    pub stdout: Option<ChildStdout>,
    /// Its stderr.
    pub stderr: Option<ChildStderr>,
    child: Child,
}

impl StreamProgram {
    /// Starts a program in `folder`, with `PATH`, `LANG`, the environment variables named in `env`, and `variables`.
    /// Requires [`guard_programs`](crate::guard_programs), and a tokio runtime.
    ///
    /// # Errors
    /// If the program does not exist or cannot be started.
    pub async fn start(
        argv: Vec<String>,
        env: Vec<String>,
        variables: Vec<(String, String)>,
        folder: &Path,
    ) -> Result<Self> {
        let grants = ProgramGrants::unrestricted(env, folder);
        let prepare = move || prepare(&grants, &argv, None, variables.clone(), true);
        let started = Child::start(Arc::new(KillHandle::default()), prepare).await;
        let mut child = started.map_err(|error| match error {
            StartError::Host(error) => Error::other(error.message),
            StartError::Io(error) => error,
        })?;
        Ok(Self {
            stdin: child.stdin.take().map(ChildStdin::from_std).transpose()?,
            stdout: child.stdout.take().map(ChildStdout::from_std).transpose()?,
            stderr: child.stderr.take().map(ChildStderr::from_std).transpose()?,
            child,
        })
    }

    /// Waits until the program exits. Returns a clause that describes how it ended.
    pub async fn ended(&mut self) -> String {
        match (&mut self.child.ended).await {
            Ok(Ok(status)) => describe(status),
            Ok(Err(error)) => error.to_string(),
            Err(_) => String::from("exited"),
        }
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was terminated by signal {signal}"),
        (None, None) => String::from("exited"),
    }
}
