//! Recorded arguments held against the specs as they are now. No model, and no tool is run.
//!
//! A call that was not valid when it was recorded is counted apart: models make such calls, and a change of a spec is not
//! to blame for them.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::files;
use crate::chat::RawArguments;
use crate::cli::args::ReplayOptions;
use crate::cli::output::{clean, print_json, print_painted, say_error};
use crate::cli::worker::tell_errors;
use crate::cli::{CliError, Exit, locate};
use crate::project::{Generation, LoadedTool, find_root, unknown_tool};
use crate::schema::{Breach, ToolEntry, ToolKind, Violation, breaches};
use crate::text::{Location, Span, count, one_line};
use crate::worker::{RecordedToolCall, Recording, holds_redacted};

/// Something that a call breaks, as `--json` has it.
#[derive(Debug, Serialize)]
struct Broken {
    file: String,
    /// The line of the recording, from 1.
    line: usize,
    tool: String,
    /// Into the arguments; empty for the call as a whole.
    path: String,
    message: String,
    /// `file:line:column` of what in the spec says so; `None`: there is no such tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Summary {
    files: usize,
    /// Calls that were valid when they were recorded.
    calls: usize,
    /// Those of them that still are.
    valid: usize,
    /// Calls that were not valid when they were recorded.
    invalid_when_recorded: usize,
    /// Files that could not be read.
    unreadable: usize,
}

#[derive(Serialize)]
struct Report<'r> {
    summary: &'r Summary,
    invalid: &'r [Broken],
}

pub(super) fn run(options: &ReplayOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let files = files::find(&options.paths)?;
    let generation = Generation::load(&find_root(&place.folder)?, &place.current, None)?;
    tell_errors(&generation);
    let mut check = Check {
        generation: &generation,
        former: HashMap::new(),
        broken: Vec::new(),
        summary: Summary::default(),
    };
    for file in &files {
        let calls = if Recording::is_at(file) {
            Recording::read(file).map(|recording| recording.calls()).map_err(|error| error.to_string())
        } else {
            read_dump(file)
        };
        check.summary.files += 1;
        match calls {
            Ok(calls) => calls.iter().for_each(|call| check.call(file, call)),
            Err(error) => {
                check.summary.unreadable += 1;
                say_error(&error);
            }
        }
    }
    let Check { broken, summary, .. } = check;
    let all_unreadable = summary.unreadable == summary.files;
    if options.json {
        print_json(&Report { summary: &summary, invalid: &broken }, true);
    } else if !all_unreadable {
        print_painted(&broken.iter().map(Broken::describe).collect::<String>());
        print_painted(&format!("{}\n", summary.describe()));
    }
    Ok(match () {
        () if all_unreadable => Exit::NotAttempted,
        () if summary.valid < summary.calls || summary.unreadable > 0 => Exit::Failed,
        () => Exit::Clean,
    })
}

struct Check<'g> {
    generation: &'g Generation,
    /// Definitions as they were offered, compiled; by their text.
    former: HashMap<String, Arc<ToolEntry>>,
    broken: Vec<Broken>,
    summary: Summary,
}

impl Check<'_> {
    fn call(&mut self, file: &Path, call: &RecordedToolCall) {
        let broken = self.breaks(file, call);
        if !broken.is_empty() && !self.was_valid(call) {
            self.summary.invalid_when_recorded += 1;
            return;
        }
        self.summary.calls += 1;
        if broken.is_empty() {
            self.summary.valid += 1;
        } else {
            self.broken.extend(broken);
        }
    }

    fn breaks(&self, file: &Path, call: &RecordedToolCall) -> Vec<Broken> {
        let broken = |violation: Violation, at: Option<(&LoadedTool, Span)>| Broken {
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
        // A tool with an error elsewhere is held to its schema all the same; the error was told.
        let is_it = |loaded: &&LoadedTool| loaded.tool.name.value == call.name;
        let broken_tool = || self.generation.load.tools.iter().find(is_it);
        let Some(loaded) = self.generation.tool(&call.name).or_else(broken_tool) else {
            let message = unknown_tool(&call.name, self.generation.tool_names()).message;
            return vec![broken(whole(message), None)];
        };
        let name = (loaded, loaded.tool.name.span);
        match (call.was_exit, loaded.tool.kind) {
            (Some(false), ToolKind::Exit) => {
                let message = "was run, and is an exit tool now, which is only recorded";
                return vec![broken(whole(String::from(message)), Some(name))];
            }
            (Some(true), ToolKind::Normal) => {
                let message = "was an exit tool, and is run now";
                return vec![broken(whole(String::from(message)), Some(name))];
            }
            (Some(_) | None, _) => {}
        }
        let arguments = match &call.arguments {
            RawArguments::Object { value } => Value::Object(value.clone()),
            RawArguments::Malformed { error, .. } => {
                let message = format!("the arguments are no JSON object: {error}");
                return vec![broken(whole(message), Some(name))];
            }
        };
        let found = breaches(&loaded.tool, loaded.entry(), &arguments).into_iter();
        // What was redacted cannot be judged.
        let is_known = |breach: &Breach| !breach.value.as_ref().is_some_and(holds_redacted);
        found.filter(is_known).map(|breach| broken(breach.violation, Some((loaded, breach.span)))).collect()
    }

    /// Whether the definition that was offered took the call. Without one there is no telling, and it is believed.
    fn was_valid(&mut self, call: &RecordedToolCall) -> bool {
        let Some(definition) = &call.definition else { return !call.is_from_a_reply() };
        let RawArguments::Object { value } = &call.arguments else { return false };
        let entry = self.former.entry(definition.to_string()).or_insert_with(|| {
            Arc::new(ToolEntry::lenient(ToolKind::Normal, Value::clone(definition), None).0)
        });
        entry.accept(Value::Object(value.clone())).is_ok()
    }
}

/// A dump of calls: `{"tool": NAME, "arguments": {…}}` a line; `name` will do, and arguments as text, too.
fn read_dump(file: &Path) -> Result<Vec<RecordedToolCall>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(index, line): (usize, &str)| {
        let malformed = || {
            let expected = "{\"tool\": NAME, \"arguments\": {…}}";
            format!("{}:{}: neither a line of a recording nor {expected}", file.display(), index + 1)
        };
        let value: Value = serde_json::from_str(line).map_err(|_| malformed())?;
        let name = value.get("tool").or_else(|| value.get("name")).and_then(Value::as_str);
        let name = name.ok_or_else(malformed)?;
        let arguments = value.get("arguments").cloned().ok_or_else(malformed)?;
        Ok(RecordedToolCall::dumped(index + 1, name, arguments))
    };
    lines.map(read).collect()
}

impl Broken {
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
            let _ = write!(text, "; {invalid_when_recorded} more {verb} not when recorded");
        }
        if *unreadable > 0 {
            let _ = write!(text, "; {} not read", count(*unreadable, "file"));
        }
        text
    }
}
