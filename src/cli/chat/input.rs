//! What the user types: edited lines on a terminal, or the lines of stdin.
//!
//! Lines are edited by `rustyline`: small beside the others (no event loop, no terminal library of its own), in use for
//! ten years and kept up. It reads on a thread of its own, and only while it is asked to: during a reply the terminal is as every
//! program has it, and Ctrl-C a signal.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Behavior, Config, Context, Editor, Helper};
use tokio::sync::mpsc as channel;

use super::command::{Opening, goes_on, joined};

/// Longest message on stdin, in bytes.
const MAX_MESSAGE: u64 = 64 << 20;

/// So many lines of history are remembered.
const MAX_HISTORY: usize = 1_000;

const PROMPT: &str = "> ";

/// What came.
#[derive(Debug)]
pub(super) enum Typed {
    Text(String),
    /// Ctrl-C, and whether there was nothing on the line.
    Interrupted {
        was_empty: bool,
    },
    End,
    /// Why it is not taken; what comes after it may be.
    Refused(String),
    Failed(String),
}

/// Where it comes from.
pub(super) struct Input {
    pub(super) is_terminal: bool,
    /// Asks for the next; dropped, the thread ends.
    ask: mpsc::Sender<()>,
    typed: channel::Receiver<Typed>,
    /// Whether the terminal is being read, and how it was before.
    reading: Arc<AtomicBool>,
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

impl Input {
    /// `history`: the file that what is typed is remembered in.
    ///
    /// # Errors
    /// When there is no thread.
    pub(super) fn open(history: Option<PathBuf>) -> std::io::Result<Self> {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let (ask, asked) = mpsc::channel();
        let (tell, typed) = channel::channel(1);
        let reading = Arc::<AtomicBool>::default();
        let told = Arc::clone(&reading);
        std::thread::Builder::new().name(String::from("deftool-input")).spawn(move || {
            if is_terminal {
                edit_lines(&asked, &tell, &told, history);
            } else {
                read_lines(&asked, &tell);
            }
        })?;
        #[cfg(unix)]
        let before = is_terminal.then(|| rustix::termios::tcgetattr(std::io::stdin()).ok()).flatten();
        Ok(Self {
            is_terminal,
            ask,
            typed,
            reading,
            #[cfg(unix)]
            before,
        })
    }

    /// What is typed next.
    pub(super) async fn next(&mut self) -> Typed {
        let _ = self.ask.send(());
        self.typed.recv().await.unwrap_or(Typed::End)
    }
}

/// Whoever ends in the middle of a line leaves the terminal as it was.
impl Drop for Input {
    fn drop(&mut self) {
        if !self.reading.load(Ordering::Acquire) {
            return;
        }
        #[cfg(unix)]
        if let Some(before) = &self.before {
            let now = rustix::termios::OptionalActions::Now;
            let _ = rustix::termios::tcsetattr(std::io::stdin(), now, before);
        }
        // Pasted text in brackets was asked for.
        let _ = std::io::stderr().lock().write_all(b"\x1b[?2004l\r\n");
    }
}

fn edit_lines(
    asked: &mpsc::Receiver<()>,
    tell: &channel::Sender<Typed>,
    reading: &AtomicBool,
    history: Option<PathBuf>,
) {
    let behavior = if std::io::stdout().is_terminal() { Behavior::Stdio } else { Behavior::PreferTerm };
    let config = Config::builder().behavior(behavior).auto_add_history(true).history_ignore_space(true);
    let config = config.max_history_size(MAX_HISTORY).map(rustyline::config::Builder::build);
    let editor = config.and_then(Editor::<Lines, FileHistory>::with_config);
    let mut editor = match editor {
        Ok(editor) => editor,
        Err(error) => {
            let _ = tell.blocking_send(Typed::Failed(error.to_string()));
            return;
        }
    };
    let is_empty = Arc::new(AtomicBool::new(true));
    editor.set_helper(Some(Lines { is_empty: Arc::clone(&is_empty) }));
    if let Some(history) = &history {
        // There may be none yet.
        let _ = editor.load_history(history);
    }
    #[cfg(target_os = "linux")]
    let mut ahead = false;
    while asked.recv().is_ok() {
        is_empty.store(true, Ordering::Release);
        reading.store(true, Ordering::Release);
        #[cfg(target_os = "linux")]
        let end = EndAhead::of(&mut ahead);
        // What is left of a read stays with the editor (its feature `buffer-redux`), and is the next line.
        let line = editor.readline(PROMPT);
        #[cfg(target_os = "linux")]
        drop(end);
        reading.store(false, Ordering::Release);
        let typed = match line {
            Ok(text) => {
                if let Some(history) = &history {
                    let _ = editor.append_history(history);
                }
                Typed::Text(joined(&text))
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {
                Typed::Interrupted { was_empty: is_empty.load(Ordering::Acquire) }
            }
            Err(ReadlineError::Eof) => Typed::End,
            Err(ReadlineError::Io(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
                Typed::Refused(String::from("what was typed is not UTF-8, and is not sent"))
            }
            Err(error) => Typed::Failed(error.to_string()),
        };
        if tell.blocking_send(typed).is_err() {
            return;
        }
    }
}

/// A Ctrl-D that was typed while the terminal edited lines itself is a NUL once the editor reads (Linux, `drivers/tty/n_tty.c`):
/// where something was typed ahead, that means what the key means. Dropped, the terminal has its key again.
#[cfg(target_os = "linux")]
struct EndAhead(rustix::termios::Termios);

#[cfg(target_os = "linux")]
impl EndAhead {
    /// `ahead`: whether anything was ever typed ahead; how much of it the editor still holds, nobody knows.
    fn of(ahead: &mut bool) -> Option<Self> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        use rustix::termios::{OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

        let stdin = std::io::stdin();
        *ahead |=
            poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&Timespec::default())).is_ok_and(|n| n > 0);
        let before = tcgetattr(&stdin).ok().filter(|_| *ahead)?;
        let mut changed = before.clone();
        changed.special_codes[SpecialCodeIndex::VEOF] = 0;
        tcsetattr(&stdin, OptionalActions::Now, &changed).ok()?;
        Some(Self(before))
    }
}

#[cfg(target_os = "linux")]
impl Drop for EndAhead {
    fn drop(&mut self) {
        let now = rustix::termios::OptionalActions::Now;
        let _ = rustix::termios::tcsetattr(std::io::stdin(), now, &self.0);
    }
}

/// The lines of stdin, joined where they go on.
fn read_lines(asked: &mpsc::Receiver<()>, tell: &channel::Sender<Typed>) {
    let mut stdin = std::io::stdin().lock();
    let mut number = 0_usize;
    while asked.recv().is_ok() {
        if tell.blocking_send(read_message(&mut stdin, &mut number)).is_err() {
            return;
        }
    }
}

/// `number`: how many lines were read.
fn read_message(stdin: &mut impl BufRead, number: &mut usize) -> Typed {
    let (mut text, mut opening, mut not_text) = (Vec::new(), Opening::default(), None);
    loop {
        let before = text.len();
        let room = (MAX_MESSAGE + 1).saturating_sub(before as u64);
        let count = match stdin.by_ref().take(room).read_until(b'\n', &mut text) {
            Ok(count) => count,
            Err(error) => return Typed::Failed(format!("stdin cannot be read: {error}")),
        };
        if text.len() as u64 > MAX_MESSAGE {
            return Typed::Failed(String::from("a message on stdin has more than 64 MiB"));
        }
        if count == 0 && before == 0 {
            return Typed::End;
        }
        *number += usize::from(count > 0);
        // The end of a line of Windows is one, too.
        if text.ends_with(b"\r\n") {
            text.truncate(text.len() - 2);
            text.push(b'\n');
        }
        let line = String::from_utf8_lossy(text.get(before..).unwrap_or_default());
        if matches!(line, std::borrow::Cow::Owned(_)) {
            not_text.get_or_insert(*number);
        }
        if count > 0 && opening.goes_on_after(line.trim_end_matches(['\n', '\r'])) {
            continue;
        }
        return match (not_text, String::from_utf8(text)) {
            (None, Ok(text)) => Typed::Text(joined(text.trim_end_matches(['\n', '\r']))),
            (line, _) => {
                let line = line.unwrap_or(*number);
                Typed::Refused(format!("line {line} of stdin is not UTF-8, and is not sent"))
            }
        };
    }
}

/// What the editor asks while a line is edited.
struct Lines {
    /// Whether there is nothing on the line.
    is_empty: Arc<AtomicBool>,
}

impl Helper for Lines {}

impl Completer for Lines {
    type Candidate = String;
}

impl Highlighter for Lines {}

impl Hinter for Lines {
    type Hint = String;

    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        self.is_empty.store(line.is_empty(), Ordering::Release);
        None
    }
}

impl Validator for Lines {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let is_open = goes_on(context.input());
        Ok(if is_open { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}
