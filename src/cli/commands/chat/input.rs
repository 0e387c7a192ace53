//! User input: edited lines on a terminal, or the lines of stdin.
//!
//! Line editing uses `rustyline`, which is small (no event loop, no terminal library), mature and maintained. A thread
//! reads input on request only: during a reply, the terminal is in its normal mode and Ctrl-C is a signal.

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

use super::command::{LineJoiner, is_incomplete, join_lines};

/// Maximum size of a message on stdin, in bytes.
const MAX_MESSAGE: u64 = 64 << 20;

/// Maximum number of lines in the history.
const MAX_HISTORY: usize = 1_000;

const PROMPT: &str = "> ";

/// An input event.
#[derive(Debug)]
pub(super) enum InputEvent {
    Text(String),
    /// Ctrl-C. `was_empty`: whether the line was empty.
    Interrupted {
        was_empty: bool,
    },
    End,
    /// An invalid message, with the reason. Further input is possible.
    Invalid(String),
    Failed(String),
}

/// The source of user input.
pub(super) struct Input {
    pub(super) is_terminal: bool,
    /// Requests the next input. The thread ends when the sender is dropped.
    requests: mpsc::Sender<()>,
    events: channel::Receiver<InputEvent>,
    /// Whether the editor is reading the terminal.
    reading: Arc<AtomicBool>,
    /// The terminal settings before the editor changed them.
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

impl Input {
    /// Starts the input thread. `history` is the history file.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn open(history: Option<PathBuf>) -> std::io::Result<Self> {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let (requests, request_queue) = mpsc::channel();
        let (sender, events) = channel::channel(1);
        let reading = Arc::<AtomicBool>::default();
        let is_reading = Arc::clone(&reading);
        std::thread::Builder::new().name(String::from("deftool-input")).spawn(move || {
            if is_terminal {
                edit_lines(&request_queue, &sender, &is_reading, history);
            } else {
                read_lines(&request_queue, &sender);
            }
        })?;
        #[cfg(unix)]
        let before = is_terminal.then(|| rustix::termios::tcgetattr(std::io::stdin()).ok()).flatten();
        Ok(Self {
            is_terminal,
            requests,
            events,
            reading,
            #[cfg(unix)]
            before,
        })
    }

    /// Returns the next input.
    pub(super) async fn next(&mut self) -> InputEvent {
        let _ = self.requests.send(());
        self.events.recv().await.unwrap_or(InputEvent::End)
    }
}

/// Restores the terminal if the chat ends while a line is edited.
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
        // Turn off bracketed paste mode.
        let _ = std::io::stderr().lock().write_all(b"\x1b[?2004l\r\n");
    }
}

fn edit_lines(
    requests: &mpsc::Receiver<()>,
    sender: &channel::Sender<InputEvent>,
    reading: &AtomicBool,
    history: Option<PathBuf>,
) {
    let behavior = if std::io::stdout().is_terminal() { Behavior::Stdio } else { Behavior::PreferTerm };
    let config = Config::builder().behavior(behavior).auto_add_history(true).history_ignore_space(true);
    let config = config.max_history_size(MAX_HISTORY).map(rustyline::config::Builder::build);
    let editor = config.and_then(Editor::<EditorHelper, FileHistory>::with_config);
    let mut editor = match editor {
        Ok(editor) => editor,
        Err(error) => {
            let _ = sender.blocking_send(InputEvent::Failed(error.to_string()));
            return;
        }
    };
    let is_empty = Arc::new(AtomicBool::new(true));
    editor.set_helper(Some(EditorHelper { is_empty: Arc::clone(&is_empty) }));
    if let Some(history) = &history {
        // The file may not exist yet.
        let _ = editor.load_history(history);
    }
    #[cfg(target_os = "linux")]
    let mut ahead = false;
    while requests.recv().is_ok() {
        is_empty.store(true, Ordering::Release);
        reading.store(true, Ordering::Release);
        #[cfg(target_os = "linux")]
        let end = TypeAheadEof::new(&mut ahead);
        // The editor buffers the rest of a read for the next line (its feature `buffer-redux`).
        let line = editor.readline(PROMPT);
        #[cfg(target_os = "linux")]
        drop(end);
        reading.store(false, Ordering::Release);
        let typed = match line {
            Ok(text) => {
                if let Some(history) = &history {
                    let _ = editor.append_history(history);
                }
                InputEvent::Text(join_lines(&text))
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {
                InputEvent::Interrupted { was_empty: is_empty.load(Ordering::Acquire) }
            }
            Err(ReadlineError::Eof) => InputEvent::End,
            Err(ReadlineError::Io(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
                InputEvent::Invalid(String::from("invalid UTF-8 in the input; the message was not sent"))
            }
            Err(error) => InputEvent::Failed(error.to_string()),
        };
        if sender.blocking_send(typed).is_err() {
            return;
        }
    }
}

/// Makes Ctrl-D work in type-ahead; restores the terminal on drop.
///
/// A Ctrl-D typed in canonical mode arrives as NUL once the editor reads in raw mode (Linux, `drivers/tty/n_tty.c`).
/// After type-ahead, the end-of-file character is therefore set to NUL.
#[cfg(target_os = "linux")]
struct TypeAheadEof(rustix::termios::Termios);

#[cfg(target_os = "linux")]
impl TypeAheadEof {
    /// Returns `None` if nothing was typed ahead. `ahead` stores whether this ever happened, because the size of the
    /// editor's buffer is unknown.
    fn new(ahead: &mut bool) -> Option<Self> {
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
impl Drop for TypeAheadEof {
    fn drop(&mut self) {
        let now = rustix::termios::OptionalActions::Now;
        let _ = rustix::termios::tcsetattr(std::io::stdin(), now, &self.0);
    }
}

/// Reads messages from stdin and joins continued lines.
fn read_lines(requests: &mpsc::Receiver<()>, sender: &channel::Sender<InputEvent>) {
    let mut stdin = std::io::stdin().lock();
    let mut number = 0_usize;
    while requests.recv().is_ok() {
        if sender.blocking_send(read_message(&mut stdin, &mut number)).is_err() {
            return;
        }
    }
}

/// Reads one message. `number` counts the lines read so far.
fn read_message(stdin: &mut impl BufRead, number: &mut usize) -> InputEvent {
    let (mut text, mut joiner, mut invalid_line) = (Vec::new(), LineJoiner::default(), None);
    loop {
        let before = text.len();
        let room = (MAX_MESSAGE + 1).saturating_sub(before as u64);
        let count = match stdin.by_ref().take(room).read_until(b'\n', &mut text) {
            Ok(count) => count,
            Err(error) => return InputEvent::Failed(format!("cannot read stdin: {error}")),
        };
        if text.len() as u64 > MAX_MESSAGE {
            return InputEvent::Failed(String::from("a message on stdin exceeds 64 MiB"));
        }
        if count == 0 && before == 0 {
            return InputEvent::End;
        }
        *number += usize::from(count > 0);
        // Convert a CRLF line end.
        if text.ends_with(b"\r\n") {
            text.truncate(text.len() - 2);
            text.push(b'\n');
        }
        let line = String::from_utf8_lossy(text.get(before..).unwrap_or_default());
        if matches!(line, std::borrow::Cow::Owned(_)) {
            invalid_line.get_or_insert(*number);
        }
        if count > 0 && joiner.continues_after(line.trim_end_matches(['\n', '\r'])) {
            continue;
        }
        return match (invalid_line, String::from_utf8(text)) {
            (None, Ok(text)) => InputEvent::Text(join_lines(text.trim_end_matches(['\n', '\r']))),
            (line, _) => {
                let line = line.unwrap_or(*number);
                InputEvent::Invalid(format!(
                    "invalid UTF-8 in line {line} of stdin; the message was not sent"
                ))
            }
        };
    }
}

/// Helper of the line editor.
struct EditorHelper {
    /// Whether the line is empty.
    is_empty: Arc<AtomicBool>,
}

impl Helper for EditorHelper {}

impl Completer for EditorHelper {
    type Candidate = String;
}

impl Highlighter for EditorHelper {}

impl Hinter for EditorHelper {
    type Hint = String;

    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        self.is_empty.store(line.is_empty(), Ordering::Release);
        None
    }
}

impl Validator for EditorHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let is_open = is_incomplete(context.input());
        Ok(if is_open { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}
