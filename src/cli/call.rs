//! `deftool call`: one validated call of one tool, no model.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value};

use super::args::CallOptions;
use super::output::{clean, harmless, print, say, say_kind};
use super::trust::ProjectTrust;
use super::{CliError, Exit, engine, locate};
use crate::diagnostic::Severity;
use crate::diagnostic::render::render_concise;
use crate::project::{Generation, GenerationRunner, ScriptState, find_root, unknown_tool, wishes};
use crate::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, ToolRunner};

/// The contract of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ToolError>,
    elapsed_ms: f64,
}

pub(super) fn run(options: &CallOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let root = find_root(&place.folder)?;
    let started = Instant::now();
    let outcome = call(options, &root, &place.current)?;
    let Some(outcome) = outcome else { return Ok(Exit::Interrupted) };
    let elapsed_ms = (started.elapsed().as_secs_f64() * 1e6).round() / 1e3;
    if options.json {
        let report = Report {
            ok: outcome.is_ok(),
            result: outcome.as_ref().ok(),
            error: outcome.as_ref().err(),
            elapsed_ms,
        };
        print(&format!("{}\n", harmless(serde_json::to_string(&report).unwrap_or_default())));
    }
    match outcome {
        Ok(result) => {
            if !options.json {
                print(&format!("{}\n", harmless(serde_json::to_string_pretty(&result).unwrap_or_default())));
            }
            Ok(Exit::Clean)
        }
        Err(error) => {
            if !options.json {
                say_kind(error.kind.as_str(), &error.message);
                if let Some(details) = &error.details {
                    say(&clean(details));
                }
            }
            Ok(Exit::Failed)
        }
    }
}

/// `None`: interrupted.
fn call(
    options: &CallOptions,
    root: &Path,
    from: &Path,
) -> Result<Option<Result<Value, ToolError>>, CliError> {
    let generation = Generation::load(root, from, None)?;
    let arguments = match read_arguments(options, &generation) {
        Ok(arguments) => arguments,
        Err(error) => return Ok(Some(Err(error))),
    };
    let called =
        generation.tool(&options.tool).filter(|called| matches!(called.script, ScriptState::Ready(_)));
    let wanted = wishes(&generation.load, called);
    let trust = ProjectTrust::settle(root, wanted, options.scripts.trust)?.of(&generation);
    let scripts = engine::start(&options.scripts)?;
    let runner = GenerationRunner { generation: Arc::new(generation), scripts, trust };
    let call = ToolCall { id: String::from("call"), name: options.tool.clone(), arguments };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = runner.run(call, CallContext::default()) => Some(outcome),
            _ = tokio::signal::ctrl_c() => None,
        }
    });
    // A file operation of a script that was stopped is not waited for.
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(outcome)
}

/// The arguments, valid under the tool's schema.
fn read_arguments(options: &CallOptions, generation: &Generation) -> Result<Map<String, Value>, ToolError> {
    let name = options.tool.as_str();
    let Some(loaded) = generation.tool(name) else { return Err(no_such_tool(name, generation)) };
    let invalid = |message: String| ToolError::new(ToolErrorKind::InvalidArguments, message);
    let text = if options.arguments == "-" {
        let mut text = String::new();
        let read = std::io::stdin().take(64 << 20).read_to_string(&mut text);
        read.map_err(|error| invalid(format!("the arguments on stdin cannot be read: {error}")))?;
        text
    } else {
        options.arguments.clone()
    };
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| invalid(format!("the arguments of `{name}` are not JSON: {error}")))?;
    if !value.is_object() {
        return Err(invalid(format!(
            "the arguments of `{name}` must be a JSON object, as in {{\"name\": \"value\"}}"
        )));
    }
    if let Err(violations) = loaded.entry().validator.validate(&value) {
        let mut told = violations.iter().map(ToString::to_string);
        let first = told.next().unwrap_or_default();
        let rest: Vec<String> = told.collect();
        let mut error = invalid(format!("`{name}`: {first}"));
        if let Some(path) =
            violations.first().map(|violation| violation.path.clone()).filter(|path| !path.is_empty())
        {
            error = error.at(path);
        }
        return Err(if rest.is_empty() { error } else { error.with_details(rest.join("\n")) });
    }
    match value {
        Value::Object(arguments) => Ok(arguments),
        _ => Ok(Map::new()),
    }
}

/// A tool that is there but has errors is told by them.
fn no_such_tool(name: &str, generation: &Generation) -> ToolError {
    let load = &generation.load;
    let broken = load.tools.iter().find(|loaded| loaded.tool.name.value == name && !loaded.tool.valid);
    let Some(broken) = broken else { return unknown_tool(name, generation.tool_names()) };
    let (source, span) = (broken.tool.source, broken.tool.span);
    let errors: Vec<String> = load
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error && finding.primary.source == source)
        .filter(|finding| finding.primary.span.start >= span.start && finding.primary.span.end <= span.end)
        .map(|finding| render_concise(finding, &load.sources))
        .collect();
    let first = errors.first().cloned().unwrap_or_default();
    let error = ToolError::new(ToolErrorKind::Load, format!("the spec of `{name}` has errors: {first}"));
    if errors.len() > 1 { error.with_details(errors.get(1..).unwrap_or_default().join("\n")) } else { error }
}
