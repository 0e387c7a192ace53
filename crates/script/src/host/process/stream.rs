//! A program that serves on its standard streams, such as an MCP server. It runs under the same guard as the programs
//! of scripts.

use std::io::{Error, Result};
use std::path::Path;
use std::sync::Arc;

use deftool_process::{Child, KillHandle};

use super::program::ProgramGrants;
use super::run::{StartError, prepare};

/// Starts a program in `folder`, with `PATH`, `LANG`, the variables about the user (`HOME`, `LOGNAME`, `SHELL`, `TERM` and
/// `USER`), those named in `env`, and `variables`. Requires [`set_guard`](deftool_process::set_guard), and a tokio runtime.
///
/// # Errors
/// If the program does not exist or cannot be started.
pub async fn start_program(
    argv: Vec<String>,
    env: Vec<String>,
    variables: Vec<(String, String)>,
    folder: &Path,
) -> Result<Child> {
    let grants = ProgramGrants::unrestricted(env, folder);
    let prepare = move || prepare(&grants, &argv, None, variables, true);
    let started = Child::start(Arc::new(KillHandle::default()), prepare).await;
    started.map_err(|error| match error {
        StartError::Host(error) => Error::other(error.message),
        StartError::Io(error) => error,
    })
}
