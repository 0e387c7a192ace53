//! The prompt of `run`: the argument, files and stdin.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use deftool_chat::Message;
use deftool_lang::text::count;
use deftool_lang::tool::{Attachment, MediaType};

use super::RunOptions;
use crate::cli::outcome::CliError;
use crate::cli::terminal::output::eprint_line;
use crate::cli::terminal::stdin::{MAX_INPUT, read_bytes, read_stdin, text_of};

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
    let (mut parts, mut attachments) = (vec![prompt], Vec::new());
    for path in &options.files {
        let name = path.display();
        let content =
            read_file(path, &mut attachments).map_err(|why| CliError::Usage(format!("-f {name}: {why}")))?;
        parts.push(format!("<file name=\"{name}\">\n{}\n</file>", content.trim_end_matches('\n')));
    }
    if argument.is_some() {
        // A loop that reads its own input from stdin would lose it without a word.
        if !input.is_empty() {
            let added = count(input.len(), "byte");
            eprint_line(&format!(
                "note: added {added} of stdin to the prompt; use --no-stdin to ignore stdin"
            ));
        }
        parts.push(input);
    }
    parts.retain(|part| !part.trim().is_empty());
    // The last part is sent unchanged.
    let last = parts.pop();
    let before = parts.iter().map(|part| part.trim_end_matches('\n'));
    let content = before.chain(last.as_deref()).collect::<Vec<_>>().join("\n\n");
    Ok(Some(Message::User { content, attachments }))
}

/// Extensions of files that are never read as text.
const MEDIA: [&str; 7] = ["png", "jpg", "jpeg", "gif", "webp", "wav", "mp3"];

/// Returns the text of a file. An image or audio is added to `attachments`, and its line is returned.
fn read_file(path: &Path, attachments: &mut Vec<Attachment>) -> Result<String, String> {
    let file = File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    let mut bytes = read_bytes(file, MAX_INPUT)?;
    let is_media = |extension: &OsStr| MEDIA.iter().any(|known| extension.eq_ignore_ascii_case(known));
    // A text may begin like an image.
    let is_binary = || bytes.contains(&0) || std::str::from_utf8(&bytes).is_err();
    if path.extension().is_some_and(is_media) || (MediaType::of(&bytes).is_some() && is_binary()) {
        let declared = path.extension().is_some_and(|extension| {
            extension.eq_ignore_ascii_case("wav") || extension.eq_ignore_ascii_case("mp3")
        });
        let declared = if declared { "audio" } else { "image" };
        let attachment = Attachment::new(std::mem::take(&mut bytes), declared);
        let attachment = attachment.map_err(|refused| refused.reason().to_owned())?;
        let line = attachment.line();
        attachments.push(attachment);
        return Ok(line);
    }
    text_of(bytes)
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
