//! What the user types: edited lines on a terminal, or the lines of stdin.
//!
//! Lines are edited by `rustyline`: small beside the others (no event loop, no terminal library of its own), in use for
//! ten years and kept up. It reads on a thread of its own, and only while it is asked to: during a reply the terminal is as every
//! program has it, and Ctrl-C a signal.

use std::io::{BufRead, IsTerminal, Write};
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

use super::command::{goes_on, joined};

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
    while asked.recv().is_ok() {
        is_empty.store(true, Ordering::Release);
        reading.store(true, Ordering::Release);
        let line = editor.readline(PROMPT);
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
            Err(error) => Typed::Failed(error.to_string()),
        };
        if tell.blocking_send(typed).is_err() {
            return;
        }
    }
}

/// The lines of stdin, joined where they go on.
fn read_lines(asked: &mpsc::Receiver<()>, tell: &channel::Sender<Typed>) {
    let mut stdin = std::io::stdin().lock();
    while asked.recv().is_ok() {
        let mut text = Vec::new();
        let typed = loop {
            let before = text.len();
            match stdin.read_until(b'\n', &mut text) {
                Ok(0) if before == 0 => break Typed::End,
                Ok(count) => {
                    let so_far = String::from_utf8_lossy(&text);
                    let line = so_far.trim_end_matches(['\n', '\r']);
                    if count == 0 || !goes_on(line) {
                        break Typed::Text(joined(line));
                    }
                }
                Err(error) => break Typed::Failed(format!("stdin cannot be read: {error}")),
            }
        };
        if tell.blocking_send(typed).is_err() {
            return;
        }
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
