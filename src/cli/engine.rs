//! How a command runs scripts: what `--isolate` and the like say, in one place.

use std::sync::Arc;

use super::CliError;
use super::args::ScriptOptions;
use super::script_log;
use crate::script::{RunnerOptions, ScriptRunner};

/// The threads that the scripts of a command run on.
///
/// # Errors
/// When the options cannot be met.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn start(_: &ScriptOptions) -> Result<Arc<ScriptRunner>, CliError> {
    let options = RunnerOptions { sink: script_log::sink(), ..RunnerOptions::default() };
    Ok(Arc::new(ScriptRunner::new(options)))
}
