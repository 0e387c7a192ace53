//! `deftool view --follow`: prints the newest request of a file that another process writes, until the request ends.
//!
//! The file is read again after each change. Text is printed as it grows, and any other entry when it no longer changes.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::path::Path;
use std::sync::Arc;

use deftool_chat::request::{Event, Outcome};
use deftool_durable::SqliteJournal;
use deftool_lang::text::one_line;
use deftool_project::FileWatcher;
use deftool_record::{
    CallEntry, CallState, Entry, EntryKind, RECORDING_CUT, RequestTimeline, Timeline, TimelineSource,
};
use serde_json::{Value, json};

use crate::cli::outcome::{CliError, Exit};
use crate::cli::terminal::interrupt::end_when_interrupted;
use crate::cli::terminal::output::{
    clean, cut, eprint_error, eprint_line, eprint_progress, print, shown_text, stdout_failed,
};
use crate::cli::worker::show::EventPrinter;

/// Maximum length of the prompt and of details, in characters.
const MAX_SHOWN: usize = 160;

/// Prints the newest request until it ends, or until a signal ends the process.
///
/// # Errors
/// If the file cannot be read, contains no request, or is a session.
pub(super) fn run(path: &Path) -> Result<Exit, CliError> {
    end_when_interrupted().map_err(CliError::Runtime)?;
    // Before the file is read, so that no change is lost.
    let watcher = FileWatcher::new(path);
    let read = newest(path)?;
    let mut printer = Printer::new();
    loop {
        let Timeline { requests, damage, .. } = read()?;
        let Some(request) = requests.last() else { return Err(no_request(path)) };
        printer.print(request);
        for damage in &damage {
            eprint_error(&format!("{damage}; the rest cannot be followed"));
        }
        match () {
            () if !damage.is_empty() => return Ok(Exit::Failed),
            () if has_ended(request) || stdout_failed() => return Ok(Exit::Clean),
            () => watcher.wait(),
        }
    }
}

/// Returns a function that reads the request that is the newest one now.
fn newest(path: &Path) -> Result<Box<dyn Fn() -> Result<Timeline, CliError> + '_>, CliError> {
    match TimelineSource::detect(path)? {
        TimelineSource::Journal => {
            let newest = SqliteJournal::requests(path)?.pop().ok_or_else(|| no_request(path))?;
            Ok(Box::new(move || Ok(Timeline::of_journal([SqliteJournal::load(path, &newest.id)?]))))
        }
        TimelineSource::Recording | TimelineSource::Events => {
            let number = Timeline::read(path)?.requests.len();
            Ok(Box::new(move || {
                let mut timeline = Timeline::read(path)?;
                timeline.requests.truncate(number);
                Ok(timeline)
            }))
        }
        TimelineSource::Session => Err(CliError::Usage(format!(
            "{}: a session does not contain the end of a request; follow a recording or a journal",
            path.display()
        ))),
    }
}

fn no_request(path: &Path) -> CliError {
    CliError::Usage(format!("{} contains no request", path.display()))
}

fn has_ended(request: &RequestTimeline) -> bool {
    request.entries.iter().any(|entry| matches!(entry.kind, EntryKind::Finished))
}

/// An entry in each of its versions: the line where it begins, its kind, and its number among those.
type Key = (usize, Discriminant<EntryKind>, usize);

/// Prints what is new in a request.
struct Printer {
    events: EventPrinter,
    /// The printed entries. Of a text, the number of printed bytes.
    printed: HashMap<Key, usize>,
    has_prompt: bool,
}

impl Printer {
    fn new() -> Self {
        Self { events: EventPrinter::new(), printed: HashMap::new(), has_prompt: false }
    }

    fn print(&mut self, request: &RequestTimeline) {
        if !self.has_prompt && !request.prompt.is_empty() {
            self.has_prompt = true;
            eprint_progress(&format!("prompt {}", short(&request.prompt)));
        }
        let has_ended = has_ended(request);
        let last_turn = request.entries.last().map_or(0, |entry| entry.turn);
        let mut numbers = HashMap::new();
        for entry in &request.entries {
            let kind = discriminant(&entry.kind);
            let number: &mut usize = numbers.entry((entry.line, kind)).or_default();
            *number += 1;
            let key = (entry.line, kind, *number);
            if let EntryKind::Text(stream) = &entry.kind {
                let printed = self.printed.entry(key).or_default();
                print(&shown_text(stream.text.get(*printed..).unwrap_or_default().to_owned()));
                *printed = stream.text.len();
            } else if is_settled(entry, has_ended || entry.turn < last_turn, has_ended)
                && self.printed.insert(key, 0).is_none()
            {
                self.print_entry(entry, request);
            }
        }
    }

    fn print_entry(&mut self, entry: &Entry, request: &RequestTimeline) {
        let event = match &entry.kind {
            EntryKind::Call(call) => {
                let [written, finished] = events_of(entry, call);
                self.events.print(&written);
                finished
            }
            EntryKind::Approval { name, answer: None, .. } => {
                return eprint_progress(&format!("ask    {}", short(name)));
            }
            EntryKind::Retry { attempt, detail } => {
                return eprint_progress(&format!("retry  attempt {attempt}: {}", short(detail)));
            }
            EntryKind::Fault { name, detail } => {
                return eprint_progress(&format!("fault  {}: {}", short(name), short(detail)));
            }
            EntryKind::Reloaded { generation, detail } => {
                Event::Reloaded { generation: *generation, detail: detail.clone() }
            }
            EntryKind::Resumed { superseded } => Event::Resumed { superseded: superseded.clone() },
            EntryKind::Warning { message } => Event::Warning { message: message.clone() },
            EntryKind::Finished => match outcome_of(request) {
                Some(outcome) => Event::Finished(Arc::new(outcome)),
                None => return eprint_line("the request has ended"),
            },
            EntryKind::Turn(_)
            | EntryKind::Reasoning(_)
            | EntryKind::Text(_)
            | EntryKind::Approval { .. }
            | EntryKind::Signal { .. } => return,
        };
        self.events.print(&event);
    }
}

/// Whether an entry no longer changes. `is_past`: its turn has ended.
fn is_settled(entry: &Entry, is_past: bool, has_ended: bool) -> bool {
    match &entry.kind {
        EntryKind::Call(call) => match call.state {
            CallState::Ok | CallState::Failed | CallState::Refused => true,
            CallState::Abandoned => has_ended,
            CallState::NotRun => is_past || call.error.is_some(),
        },
        // The request has not ended yet.
        EntryKind::Fault { name, .. } => name != RECORDING_CUT,
        _ => true,
    }
}

/// Returns the events of a call and its end.
fn events_of(entry: &Entry, call: &CallEntry) -> [Event; 2] {
    let CallEntry { id, name, arguments, state, result, error, .. } = call.clone();
    let reason = match state {
        CallState::Refused => "the user did not allow this call",
        CallState::Abandoned => "no result",
        CallState::Ok | CallState::Failed | CallState::NotRun => "not run",
    };
    let ok = state == CallState::Ok;
    let began_ms = call.started_ms.unwrap_or_default();
    let elapsed_ms = match state {
        CallState::Ok | CallState::Failed | CallState::Abandoned => {
            entry.end_ms.map_or(0, |end_ms| end_ms.saturating_sub(began_ms))
        }
        CallState::Refused | CallState::NotRun => 0,
    };
    [
        Event::ToolCall { id: id.clone(), name: name.clone(), arguments: Arc::new(arguments) },
        Event::ToolFinished {
            id,
            name,
            ok,
            result: ok.then_some(result.unwrap_or_default()),
            attachments: Vec::new(),
            error: error.or_else(|| (!ok).then(|| json!({ "message": reason }))),
            elapsed_ms,
        },
    ]
}

/// Returns the outcome with its texts and signals, which are entries. `None`: it is damaged.
fn outcome_of(request: &RequestTimeline) -> Option<Outcome> {
    let (mut text, mut signals, mut reasoning) = (String::new(), Vec::new(), None);
    for entry in &request.entries {
        match &entry.kind {
            EntryKind::Text(stream) => text.push_str(&stream.text),
            EntryKind::Reasoning(stream) => reasoning = Some(stream.text.clone()),
            EntryKind::Signal { name, arguments, arguments_error } => signals.push(json!({
                "tool_name": name,
                "arguments": arguments,
                "arguments_error": arguments_error,
                "emitted_at_ms": entry.at_ms,
            })),
            _ => {}
        }
    }
    let mut outcome = request.outcome.clone();
    outcome.insert(String::from("text"), Value::from(text));
    outcome.insert(String::from("signals"), Value::from(signals));
    outcome.insert(String::from("reasoning"), Value::from(reasoning));
    serde_json::from_value(Value::Object(outcome)).ok()
}

fn short(text: &str) -> String {
    cut(&clean(&one_line(text.to_owned())), MAX_SHOWN)
}
