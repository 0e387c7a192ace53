//! Validates recorded arguments against the current specs. Runs no tool and uses no model.
//!
//! Calls that were already invalid when recorded are counted separately, because a spec change did not cause them.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use deftool_chat::RawArguments;
use deftool_chat::request::FailureKind;
use deftool_lang::schema::{LocatedViolation, ToolEntry, ToolKind, Violation, locate_violations};
use deftool_lang::text::{Location, Span, count, one_line};
use deftool_project::{Generation, LoadedTool, find_root, unknown_tool};
use deftool_record::{CallEntry, EntryKind, RecordedToolCall, Recording, TimelineSource, holds_redacted};
use serde::Serialize;
use serde_json::Value;

use super::ReplayOptions;
use crate::cli::outcome::{CliError, Exit};
use crate::cli::terminal::output::{clean, eprint_error, print_json, print_styled};
use crate::cli::worker::{eprint_errors, recordings, timelines};

/// A violation of a spec by a call, in the output of `--json`.
#[derive(Debug, Serialize)]
struct InvalidCall {
    file: String,
    /// The line of the recording; lines start at 1.
    line: usize,
    tool: String,
    /// The path into the arguments; empty for the whole call.
    path: String,
    message: String,
    /// `file:line:column` of the violated part of the spec; `None` for an unknown tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Summary {
    files: usize,
    /// Calls that were valid when they were recorded.
    calls: usize,
    /// The number of these calls that are still valid.
    valid: usize,
    /// Calls that were already invalid when they were recorded.
    invalid_when_recorded: usize,
    /// Files that could not be read.
    unreadable: usize,
}

#[derive(Serialize)]
struct Report<'r> {
    summary: &'r Summary,
    invalid: &'r [InvalidCall],
}

pub(super) fn run(options: &ReplayOptions) -> Result<Exit, CliError> {
    let dirs = options.project.dirs()?;
    let files = recordings::find(&options.paths)?;
    let generation = Generation::load(&find_root(&dirs.project)?, &dirs.current, None)?;
    eprint_errors(&generation);
    let mut checker = CallChecker {
        generation: &generation,
        recorded_definitions: HashMap::new(),
        invalid: Vec::new(),
        summary: Summary::default(),
    };
    for file in &files {
        let calls = match TimelineSource::detect(file) {
            Ok(TimelineSource::Recording) => {
                Recording::read(file).map(|recording| recording.calls()).map_err(|error| error.to_string())
            }
            Ok(TimelineSource::Journal | TimelineSource::Session) => read_timeline(file),
            Ok(TimelineSource::Events) | Err(_) => read_dump(file),
        };
        checker.summary.files += 1;
        match calls {
            Ok(calls) => calls.iter().for_each(|call| checker.check(file, call)),
            Err(error) => {
                checker.summary.unreadable += 1;
                eprint_error(&error);
            }
        }
    }
    let CallChecker { invalid, summary, .. } = checker;
    let all_unreadable = summary.unreadable == summary.files;
    let nothing_compared = summary.calls == 0 && invalid.is_empty();
    if options.format.is_json() {
        print_json(&Report { summary: &summary, invalid: &invalid }, true);
    } else if !all_unreadable {
        print_styled(&invalid.iter().map(InvalidCall::describe).collect::<String>());
        print_styled(&format!("{}\n", summary.describe()));
    }
    Ok(match () {
        () if all_unreadable || nothing_compared => Exit::NotAttempted,
        () if summary.valid < summary.calls || summary.unreadable > 0 => Exit::Failed,
        () => Exit::Clean,
    })
}

/// Validates recorded calls.
struct CallChecker<'g> {
    generation: &'g Generation,
    /// The compiled definitions in the recordings, by their JSON text.
    recorded_definitions: HashMap<String, Arc<ToolEntry>>,
    invalid: Vec<InvalidCall>,
    summary: Summary,
}

impl CallChecker<'_> {
    /// Validates a call and updates the counts.
    fn check(&mut self, file: &Path, call: &RecordedToolCall) {
        let violations = self.violations(file, call);
        if !violations.is_empty() && !self.was_valid(call) {
            self.summary.invalid_when_recorded += 1;
            return;
        }
        self.summary.calls += 1;
        if violations.is_empty() {
            self.summary.valid += 1;
        } else {
            self.invalid.extend(violations);
        }
    }

    /// Returns the violations of the current spec by a call.
    fn violations(&self, file: &Path, call: &RecordedToolCall) -> Vec<InvalidCall> {
        let invalid = |violation: Violation, at: Option<(&LoadedTool, Span)>| InvalidCall {
            file: file.display().to_string(),
            line: call.line,
            tool: call.name.clone(),
            path: violation.path,
            message: violation.message,
            spec: at.map(|(loaded, span)| {
                self.generation.load.sources.describe(Location { source: loaded.tool.source, span })
            }),
        };
        let whole = |message: String| Violation { path: String::new(), message };
        // Also validate calls of tools with other errors, which were already reported.
        let has_name = |loaded: &&LoadedTool| loaded.tool.name.value == call.name;
        let broken_tool = || self.generation.load.tools.iter().map(AsRef::as_ref).find(has_name);
        let Some(loaded) = self.generation.tool(&call.name).or_else(broken_tool) else {
            let message = unknown_tool(&call.name, self.generation.tool_names()).message;
            return vec![invalid(whole(message), None)];
        };
        let name = (loaded, loaded.tool.name.span);
        match (call.was_exit, loaded.tool.kind) {
            (Some(false), ToolKind::Exit) => {
                let message = "was called as a tool, but is now an exit tool";
                return vec![invalid(whole(String::from(message)), Some(name))];
            }
            (Some(true), ToolKind::Normal) => {
                let message = "was an exit tool, but is now a tool";
                return vec![invalid(whole(String::from(message)), Some(name))];
            }
            (Some(_) | None, _) => {}
        }
        let arguments = match &call.arguments {
            RawArguments::Object { value } => value,
            RawArguments::Malformed { error, .. } => {
                let message = format!("the arguments are not a JSON object: {error}");
                return vec![invalid(whole(message), Some(name))];
            }
        };
        if loaded.entry().accept_repaired(arguments.clone()).is_ok() {
            return Vec::new();
        }
        let found = locate_violations(&loaded.tool, loaded.entry(), arguments).into_iter();
        // Redacted values cannot be validated.
        let is_known = |violation: &LocatedViolation| !violation.value.as_ref().is_some_and(holds_redacted);
        found
            .filter(is_known)
            .map(|violation| invalid(violation.violation, Some((loaded, violation.span))))
            .collect()
    }

    /// Returns whether the recorded definition accepts the call. A call without a recorded definition counts as valid
    /// only if it is from a dump.
    fn was_valid(&mut self, call: &RecordedToolCall) -> bool {
        let Some(definition) = &call.definition else { return !call.is_from_a_reply() };
        let RawArguments::Object { value } = &call.arguments else { return false };
        let entry = self.recorded_definitions.entry(definition.to_string()).or_insert_with(|| {
            Arc::new(ToolEntry::lenient(ToolKind::Normal, Value::clone(definition), None).0)
        });
        entry.accept_repaired(value.clone()).is_ok()
    }
}

/// Reads the calls of a journal or a session. Calls whose arguments were invalid then are not included, because the
/// file does not contain the definitions of the tools.
fn read_timeline(file: &Path) -> Result<Vec<RecordedToolCall>, String> {
    let timeline = timelines::read(file).map_err(|error| error.to_string())?;
    for damage in &timeline.damage {
        eprint_error(&format!("{damage}; what can be read is validated"));
    }
    let calls = timeline.requests.into_iter().flat_map(|request| request.entries).filter_map(|entry| {
        let EntryKind::Call(call) = entry.kind else { return None };
        let CallEntry { name, arguments, error, .. } = *call;
        let was_valid = error.is_none_or(|error| error["kind"] != FailureKind::InvalidArguments.as_str());
        was_valid.then(|| RecordedToolCall::dumped(entry.line, &name, arguments))
    });
    Ok(calls.collect())
}

/// Reads a list of calls, one `{"tool": NAME, "arguments": {…}}` per line. Also accepts `name` instead of `tool`, and
/// arguments as JSON text.
fn read_dump(file: &Path) -> Result<Vec<RecordedToolCall>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(index, line): (usize, &str)| {
        let malformed = || {
            let expected = "{\"tool\": NAME, \"arguments\": {…}}";
            format!("{}:{}: expected a line of a recording or {expected}", file.display(), index + 1)
        };
        let value: Value = serde_json::from_str(line).map_err(|_| malformed())?;
        let name = value.get("tool").or_else(|| value.get("name")).and_then(Value::as_str);
        let name = name.ok_or_else(malformed)?;
        let arguments = value.get("arguments").cloned().ok_or_else(malformed)?;
        Ok(RecordedToolCall::dumped(index + 1, name, arguments))
    };
    lines.map(read).collect()
}

impl InvalidCall {
    fn describe(&self) -> String {
        let Self { file, line, tool, path, message, spec } = self;
        let spec = spec.as_ref().map(|spec| format!(" ({spec})")).unwrap_or_default();
        let text = one_line(format!("{file}:{line}: {tool}{path}: {message}{spec}"));
        format!("{}\n", clean(&text))
    }
}

impl Summary {
    fn describe(&self) -> String {
        let Self { files, calls, valid, invalid_when_recorded, unreadable } = self;
        let mut text = match calls {
            0 => format!("no valid call in {}", count(*files, "file")),
            _ => format!("{valid} of {calls} still valid"),
        };
        if *invalid_when_recorded > 0 {
            let verb = if *invalid_when_recorded == 1 { "was" } else { "were" };
            let _ = write!(text, "; {invalid_when_recorded} more {verb} already invalid when recorded");
        }
        if *unreadable > 0 {
            let _ = write!(text, "; cannot read {}", count(*unreadable, "file"));
        }
        text
    }
}
