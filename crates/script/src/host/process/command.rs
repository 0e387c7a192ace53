//! Calls of tools that are programs (`:command`): without Lua, and otherwise like `process.run` in a script.

use std::path::Path;
use std::sync::Arc;

use deftool_lang::schema::Arguments;
use deftool_lang::spec::{BEGINS_WITH_DASH, FilledCommand, ToolCommand};
use deftool_lang::tool::{ToolError, ToolErrorKind, ToolOutput};
use serde_json::Value;

use crate::control::{Answer, Control};
use crate::convert::MAX_BYTES;
use crate::error::message;
use crate::path::resolve_path;
use crate::script::Script;

/// Maximum length of the output of errors in a message, in characters. The end is kept.
const MAX_STDERR: usize = 1_000;

/// A program that has ended.
pub(crate) struct Ended {
    /// The exit code, unless a signal ended it.
    pub(crate) code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    /// Whether a part of the output is lost.
    pub(crate) truncated: bool,
    pub(crate) stderr: Vec<u8>,
}

/// Returns the words and the input of a call.
///
/// # Errors
/// If a value cannot be passed to the program, or if the home folder is not known.
pub(crate) fn fill(
    script: &Script,
    command: &ToolCommand,
    arguments: &Arguments,
) -> Result<FilledCommand, ToolError> {
    let home = if command.names_home() { home_folder()? } else { String::new() };
    command.fill(arguments, &home).map_err(|error| {
        let path = format!(".{}", error.argument);
        let message = format!("`{}`: {path}: {error}", script.tool);
        let refused = ToolError::new(ToolErrorKind::InvalidArguments, message).at(path);
        if error.problem == BEGINS_WITH_DASH {
            refused.with_details(
                "help: put `\"--\"` before the placeholder if the program reads it, or set `:dash t`",
            )
        } else {
            refused
        }
    })
}

/// Returns the home folder, in place of `~`.
fn home_folder() -> Result<String, ToolError> {
    let folder = resolve_path(Path::new(""), "~").and_then(|folder| {
        folder.into_os_string().into_string().map_err(|_| String::from("the home folder is not valid UTF-8"))
    });
    folder.map_err(|why| ToolError::new(ToolErrorKind::Load, why))
}

/// Returns the answer of a call whose program has ended.
pub(crate) fn answer_of(command: &ToolCommand, ended: Ended) -> Answer {
    let program = command.program();
    if !ended.code.is_some_and(|code| command.accepts_code(code)) {
        let end = match (ended.code, ended.signal) {
            (Some(code), _) => format!("exited with code {code}"),
            (None, Some(signal)) => format!("was killed by signal {}", signal_name(signal)),
            (None, None) => String::from("was killed"),
        };
        let stderr = String::from_utf8_lossy(&ended.stderr);
        let text = format!("`{program}` {end}{}", shown(stderr.trim()));
        return Err(ToolError::new(ToolErrorKind::Failure, message(&text)));
    }
    let unserialisable =
        |problem: String| ToolError::new(ToolErrorKind::Unserialisable, format!("the output is {problem}"));
    if ended.truncated {
        return Err(unserialisable(format!("larger than {} KiB", MAX_BYTES / 1024)));
    }
    if command.prints_json {
        let value: Value = serde_json::from_slice(&ended.stdout)
            .map_err(|error| unserialisable(format!("not JSON, which `:returns` requires: {error}")))?;
        return Ok(ToolOutput::from(value));
    }
    let mut text = String::from_utf8(ended.stdout).map_err(|error| {
        unserialisable(format!("not UTF-8 (at byte {})", error.utf8_error().valid_up_to() + 1))
    })?;
    // As in `$(…)`, but only one: the others may be content.
    if text.ends_with('\n') {
        text.truncate(text.len() - 1);
    }
    if let Some(code) = ended.code.filter(|code| *code != 0) {
        let line = format!("[exit code {code}]");
        text = if text.is_empty() { line } else { format!("{text}\n{line}") };
    }
    Ok(ToolOutput::from(Value::String(text)))
}

/// Returns the end of the output of errors for a message.
fn shown(stderr: &str) -> String {
    let surplus = stderr.chars().count().saturating_sub(MAX_STDERR);
    match surplus {
        _ if stderr.is_empty() => String::new(),
        0 => format!(": {stderr}"),
        _ => format!(": …{}", stderr.chars().skip(surplus).collect::<String>()),
    }
}

#[cfg(unix)]
fn signal_name(signal: i32) -> String {
    use std::os::unix::process::ExitStatusExt as _;

    // `signal: 9 (SIGKILL)`
    let status = std::process::ExitStatus::from_raw(signal).to_string();
    status.trim_start_matches("signal: ").to_owned()
}

#[cfg(not(unix))]
fn signal_name(signal: i32) -> String {
    signal.to_string()
}

/// Runs the program of a tool. If `control` is stopped or the future is dropped, the program is killed.
#[cfg(unix)]
pub(crate) async fn call(
    script: &Script,
    command: &ToolCommand,
    arguments: &Arguments,
    control: &Arc<Control>,
) -> Answer {
    use std::pin::pin;
    use std::sync::Weak;
    use std::task::Poll;

    use deftool_process::KillHandle;

    use super::program::ProgramGrants;
    use super::run::run;
    use crate::control::{Watched, now};
    use crate::io;

    let request = request(fill(script, command, arguments)?, command.cwd.clone())?;
    control.limit_call(now());
    let _watched = Watched::start(control);
    let kill_handle = Arc::new(KillHandle::default());
    let handle: Weak<KillHandle> = Arc::downgrade(&kill_handle);
    control.abort_on_end(handle);
    let grants = Arc::new(ProgramGrants::new(script));
    // The caller adds the program to the message.
    let missing = format!("program {} ", command.program());
    let mut running = pin!(io::run(run(grants, request, kill_handle)));
    let ended = std::future::poll_fn(|context| {
        control.register(context.waker());
        match control.stopped() {
            Some(reason) => {
                let error = control.error(reason);
                let message = error.message.replacen("the script", "the program", 1);
                Poll::Ready(Err(ToolError { message, ..error }))
            }
            None => running.as_mut().poll(context).map_err(|error| {
                let text = error.message;
                let message = match text.strip_prefix("cwd ") {
                    Some(problem) => format!("`:cwd` {problem}; create the folder, or change `:cwd`"),
                    // The program is granted, so it is missing or cannot be started.
                    None => format!("{}; install it, or change `:command`", text.replacen(&missing, "", 1)),
                };
                ToolError::new(ToolErrorKind::Load, message)
            }),
        }
    })
    .await?;
    let truncated = ended.stdout.truncated;
    let (stdout, stderr) = (ended.stdout.bytes, ended.stderr.bytes);
    answer_of(command, Ended { code: ended.code, signal: ended.signal, stdout, truncated, stderr })
}

/// Fails: programs are not supported on this platform.
#[cfg(not(unix))]
pub(crate) async fn call(_: &Script, _: &ToolCommand, _: &Arguments, _: &Arc<Control>) -> Answer {
    Err(ToolError::new(ToolErrorKind::Load, "programs are not supported on this platform"))
}

/// Returns the run of a filled command, within the limits of `process.run`.
#[cfg(unix)]
fn request(filled: FilledCommand, cwd: Option<String>) -> Result<super::run::RunRequest, ToolError> {
    use super::table;

    let FilledCommand { words, stdin } = filled;
    let too_large = |what: &str| {
        let message = format!("the arguments are too large: {what}");
        Err(ToolError::new(ToolErrorKind::InvalidArguments, message))
    };
    if words.len() > table::MAX_ITEMS {
        return too_large(&format!("more than {} words", table::MAX_ITEMS));
    }
    if words.iter().map(String::len).sum::<usize>() > table::MAX_BYTES {
        return too_large(&format!("more than {} KiB of words", table::MAX_BYTES >> 10));
    }
    if stdin.as_ref().is_some_and(|text| text.len() as u64 > table::MAX_STREAM) {
        return too_large(&format!("more than {} MiB on stdin", table::MAX_STREAM >> 20));
    }
    Ok(super::run::RunRequest {
        argv: words,
        stdin: stdin.map(String::into_bytes),
        cwd,
        variables: Vec::new(),
        timeout: None,
        max_output: MAX_BYTES,
    })
}
