//! `deftool chat --list`: the sessions of all projects.

use std::fmt::Write;

use deftool_lang::text::one_line;
use jiff::tz::TimeZone;

use crate::cli::outcome::Exit;
use crate::cli::terminal::output::{clean, cut, eprint_error, eprint_progress, print_json, print_lines};
use crate::cli::worker::session::{ListedSession, all_sessions};

/// Maximum number of shown characters of a prompt.
const MAX_PROMPT: usize = 60;

/// Prints the sessions. One that cannot be read does not affect the others.
pub(super) fn run(json: bool) -> Exit {
    let mut sessions = Vec::new();
    let mut exit = Exit::Clean;
    for (changed, path) in all_sessions() {
        let damage = match ListedSession::read(&path, changed) {
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

fn table(sessions: &[ListedSession]) -> String {
    let mut rows = vec![["NAME", "CHANGED", "TURNS", "PROJECT", "FIRST PROMPT"].map(str::to_owned)];
    for session in sessions {
        rows.push([
            clean(&one_line(session.name.clone())),
            session.changed().to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
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
