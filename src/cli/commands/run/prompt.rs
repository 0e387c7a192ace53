//! The prompt of `run`: the argument, files and stdin.

use std::io::{BufRead, IsTerminal};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use deftool_chat::Message;
use deftool_lang::text::count;

use super::RunOptions;
use crate::cli::outcome::CliError;
use crate::cli::terminal::output::eprint_line;
use crate::cli::terminal::stdin::read_stdin;
use crate::cli::worker::message::{NamedBy, user_message};

/// Time without input after which a note explains that stdin is read.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns the prompt with its context; `None` for the recorded prompt.
///
/// # Errors
/// If there is no prompt, or a file or stdin cannot be read, or is neither text nor an image or audio.
pub(in crate::cli) fn read_prompt(options: &RunOptions) -> Result<Option<Message>, CliError> {
    let stdin = std::io::stdin();
    let argument = options.prompt.as_deref().filter(|prompt| *prompt != "-");
    let is_named = options.prompt.is_some() && argument.is_none();
    if options.prompt.is_none() && options.replay.is_some() && options.files.is_empty() {
        return Ok(None);
    }
    let is_read = is_named || !(options.no_stdin || stdin.is_terminal());
    if argument.is_none() && options.files.is_empty() && !is_read {
        let message = "missing prompt; pass it as an argument or on stdin";
        return Err(CliError::Usage(String::from(message)));
    }
    let what = if argument.is_none() { "the prompt" } else { "the context" };
    let input = if is_read { read_waiting(what)? } else { String::new() };
    let prompt = argument.unwrap_or(&input).to_owned();
    let source = if argument.is_none() { " on stdin" } else { "" };
    if prompt.trim().is_empty() && (options.files.is_empty() || argument.is_some()) {
        return Err(CliError::Usage(format!("the prompt{source} is empty")));
    }
    // A loop that reads its own input from stdin would lose it without a word.
    if argument.is_some() && !input.is_empty() {
        let added = count(input.len(), "byte");
        eprint_line(&format!("note: added {added} of stdin to the prompt; use --no-stdin to ignore stdin"));
    }
    let context = if argument.is_some() { input } else { String::new() };
    let message = user_message(prompt, (&options.files, NamedBy::User), context);
    message.map(Some).map_err(|error| CliError::Usage(format!("-f {error}")))
}

/// Reads stdin to its end. Prints a note if nothing arrives.
fn read_waiting(what: &str) -> Result<String, CliError> {
    let (started, waiting) = channel::<()>();
    std::thread::spawn(move || {
        if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            eprint_line("note: reading stdin to its end; use --no-stdin to ignore it");
        }
    });
    // Wait for the first byte. An error is reported by the next read.
    let _ = std::io::stdin().lock().fill_buf();
    drop(started);
    read_stdin(what).map_err(CliError::Usage)
}
