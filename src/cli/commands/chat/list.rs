//! `deftool chat --list`: the sessions of all projects.

use std::fmt::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use deftool_chat::Message;
use deftool_lang::text::one_line;
use deftool_record::StoredFileError;
use deftool_record::session::{Line, SessionPart};
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use crate::cli::outcome::Exit;
use crate::cli::terminal::output::{clean, cut, eprint_error, eprint_progress, print_json, print_lines};
use crate::cli::worker::session::all_sessions;

/// Maximum number of shown characters of a prompt.
const MAX_PROMPT: usize = 60;

/// A session in the output of `--json`.
#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    project: String,
    /// Unix time of the last change in milliseconds.
    changed_at_ms: u64,
    /// The number of messages of the user.
    turns: usize,
    /// The first message of the user.
    prompt: String,
    file: String,
}

/// Prints the sessions. One that cannot be read does not affect the others.
pub(super) fn run(json: bool) -> Exit {
    let mut sessions = Vec::new();
    let mut exit = Exit::Clean;
    for (changed, path) in all_sessions() {
        let damage = match Listed::read(&path, changed) {
            Ok((session, damage)) => {
                sessions.push(session);
                damage
            }
            Err(error) => Some(error),
        };
        if let Some(error) = damage {
            eprint_error(&error.to_string());
            exit = Exit::Failed;
        }
    }
    if json {
        print_json(&sessions, true);
    } else if sessions.is_empty() {
        eprint_progress("no sessions; start one with `deftool chat`");
    } else {
        print_lines(&table(&sessions));
    }
    exit
}

impl Listed {
    /// Reads a session. Also returns the reason why a part of it cannot be read.
    fn read(path: &Path, changed: SystemTime) -> Result<(Self, Option<StoredFileError>), StoredFileError> {
        let SessionPart { first, messages, damage, .. } = SessionPart::read(path)?;
        let project = match first {
            Line::Chat { project, .. } => project,
            _ => String::new(),
        };
        let mut prompts = messages.iter().filter_map(|(_, message)| match message {
            Message::User { content, .. } => Some(content),
            _ => None,
        });
        let prompt = prompts.next().cloned();
        let session = Self {
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            project,
            changed_at_ms: changed.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64),
            turns: usize::from(prompt.is_some()) + prompts.count(),
            prompt: prompt.unwrap_or_default(),
            file: path.display().to_string(),
        };
        Ok((session, damage))
    }
}

fn table(sessions: &[Listed]) -> String {
    let mut rows = vec![["NAME", "CHANGED", "TURNS", "PROJECT", "FIRST PROMPT"].map(str::to_owned)];
    for session in sessions {
        let changed = Timestamp::from_millisecond(session.changed_at_ms.cast_signed()).unwrap_or_default();
        rows.push([
            clean(&one_line(session.name.clone())),
            changed.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
            session.turns.to_string(),
            clean(&one_line(session.project.clone())),
            cut(&clean(&one_line(session.prompt.clone())), MAX_PROMPT),
        ]);
    }
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2), width(3)];
    let mut text = String::new();
    for [name, changed, turns, project, prompt] in &rows {
        let _ = writeln!(
            text,
            "{name:0$}  {changed:1$}  {turns:>2$}  {project:3$}  {prompt}",
            widths[0], widths[1], widths[2], widths[3]
        );
    }
    text
}
