//! Messages of the user with files.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use deftool_chat::Message;
use deftool_lang::tool::{Attachment, MediaType};
use deftool_process::files::open_regular;

use crate::cli::terminal::stdin::{MAX_INPUT, read_bytes, text_of};

/// Who names the files of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum NamedBy {
    /// The user, on the command line: a file may be a pipe, as in `-f <(git diff)`.
    User,
    /// A line of a batch or a client: a file must be a regular file, because reading a pipe could wait forever.
    Line,
}

/// Returns the message of a prompt, then files, then `context`.
///
/// # Errors
/// If a file cannot be read, or is neither text nor an image or audio. The message begins with its name.
pub(in crate::cli) fn user_message(
    prompt: String,
    (files, named_by): (&[PathBuf], NamedBy),
    context: String,
) -> Result<Message, String> {
    let (mut parts, mut attachments) = (vec![prompt], Vec::new());
    for path in files {
        let name = path.display();
        let content = read_file(path, named_by, &mut attachments).map_err(|why| format!("{name}: {why}"))?;
        parts.push(format!("<file name=\"{name}\">\n{}\n</file>", content.trim_end_matches('\n')));
    }
    parts.push(context);
    parts.retain(|part| !part.trim().is_empty());
    // The last part is sent unchanged.
    let last = parts.pop();
    let before = parts.iter().map(|part| part.trim_end_matches('\n'));
    let content = before.chain(last.as_deref()).collect::<Vec<_>>().join("\n\n");
    Ok(Message::User { content, attachments })
}

/// Extensions of files that are never read as text.
const MEDIA: [&str; 7] = ["png", "jpg", "jpeg", "gif", "webp", "wav", "mp3"];

/// Returns the text of a file. An image or audio is added to `attachments`, and its line is returned.
fn read_file(path: &Path, named_by: NamedBy, attachments: &mut Vec<Attachment>) -> Result<String, String> {
    let opened = match named_by {
        NamedBy::User => File::open(path),
        NamedBy::Line => open_regular(path),
    };
    let file = opened.map_err(|error| format!("cannot be read: {error}"))?;
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
