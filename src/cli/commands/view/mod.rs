//! `deftool view`: writes a run, or the difference of two runs, as one HTML page, or prints a run while it is written.
//!
//! | file | |
//! |---|---|
//! | `difference` | two timelines → aligned rows with their differences |
//! | `follow` | a request that another process runs → text on the terminal |
//! | `html` | the page: hand-written HTML, CSS and JavaScript in `page/`, with the data as JSON |

mod difference;
mod follow;
mod html;

use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use deftool_lang::text::count;
use deftool_process::files::{Readers, open_regular};
use deftool_record::EntryKind;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::outputs::write_output;
use crate::cli::terminal::output::{clean, eprint_error, eprint_progress, print};
use crate::cli::worker::timelines;
use html::{Page, ShownFile};

#[derive(Debug, Args)]
#[command(after_help = "\
The page contains the whole run and needs neither the network nor the project. The format of a file is detected from \
its content: a recording (run --record, chat --record), a journal (run --journal), a session of `deftool chat`, or the \
output of `deftool run --json`. The last two have no times.

Examples:
  deftool view hello.jsonl
  deftool view before.jsonl after.jsonl -o difference.html
  deftool view hello.jsonl -o - > hello.html
  deftool view hello.jsonl --follow")]
pub(in crate::cli) struct ViewOptions {
    /// Recording, journal, session or events; with a second one, show both side by side
    #[arg(required = true, num_args = 1..=2, value_name = "FILE")]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// File to write, or `-` for stdout [default: the name of FILE with .html, in the current folder]
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Overwrite a file that is not a page of `deftool view`
    #[arg(long)]
    pub(in crate::cli) force: bool,
    /// Print the newest request of a recording or journal that another process writes, until it ends
    #[arg(long, conflicts_with_all = ["output", "force"])]
    pub(in crate::cli) follow: bool,
}

pub(in crate::cli) fn run(options: &ViewOptions) -> Result<Exit, CliError> {
    if options.follow {
        return match options.files.as_slice() {
            [file] => follow::run(file),
            _ => Err(CliError::Usage(String::from("--follow takes one file"))),
        };
    }
    let files: Vec<ShownFile> = options.files.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let rows = match files.as_slice() {
        [left, right] => Some(difference::rows(&left.timeline, &right.timeline)),
        _ => None,
    };
    let page = Page { files, rows };
    let path = options.output.clone().unwrap_or_else(|| default_path(&options.files));
    let text = html::render(&page);
    if path.as_os_str() == "-" {
        print(&text);
        return Ok(Exit::Clean);
    }
    if options.files.iter().any(|file| is_same_file(file, &path)) {
        return Err(CliError::Usage(format!(
            "the output `{}` is an input",
            clean(&path.display().to_string())
        )));
    }
    write(&path, &text, options.force)
        .map_err(|source| CliError::Unwritable { path: path.display().to_string(), source })?;
    eprint_progress(&format!("wrote {} ({})", clean(&path.display().to_string()), page.describe()));
    Ok(Exit::Clean)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((std::fs::canonicalize(one), std::fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

fn read(path: &Path) -> Result<ShownFile, CliError> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let timeline = timelines::read(path)?;
    for damage in &timeline.damage {
        eprint_error(&format!("{damage}; the page shows what can be read"));
    }
    Ok(ShownFile { name, timeline })
}

/// Returns the name of the first file with the extension `html`, or of both files.
fn default_path(files: &[PathBuf]) -> PathBuf {
    let stems: Vec<_> = files
        .iter()
        .map(|path| path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned())
        .collect();
    PathBuf::from(stems.join("-") + ".html")
}

/// Writes a page that only the user can read, because it contains conversations. Without `force`, an existing file must
/// be an older page.
fn write(path: &Path, text: &str, force: bool) -> std::io::Result<()> {
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    if is_file && !force {
        let mut head = Vec::new();
        open_regular(path)?.take(html::BEGINNING.len() as u64).read_to_end(&mut head)?;
        if !head.is_empty() && head != html::BEGINNING.as_bytes() {
            let why = "the existing file is not a page of `deftool view`; choose another name";
            return Err(Error::new(ErrorKind::AlreadyExists, why));
        }
    }
    write_output(path, text.as_bytes(), Readers::User)
}

impl Page {
    /// Describes the content, as in `1 request, 2 turns, 1 call`.
    fn describe(&self) -> String {
        if let Some(rows) = &self.rows {
            let differing = rows.iter().filter(|row| row.differs()).count();
            return if differing == 0 {
                String::from("no differences")
            } else {
                format!("{differing} of {} entries differ", rows.len())
            };
        }
        let requests = || self.files.iter().flat_map(|file| &file.timeline.requests);
        let number = |is_counted: fn(&EntryKind) -> bool| {
            requests().flat_map(|request| &request.entries).filter(|entry| is_counted(&entry.kind)).count()
        };
        let turns = number(|kind| matches!(kind, EntryKind::Turn(turn) if turn.attempt <= 1));
        let calls = number(|kind| matches!(kind, EntryKind::Call(_)));
        let parts = [(requests().count(), "request"), (turns, "turn"), (calls, "call")];
        parts.map(|(number, word)| count(number, word)).join(", ")
    }
}
