//! The script of each tool: found, compiled, held against its spec. Never run.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Load;
use super::load::ScriptState;
use super::read::display_name;
use crate::diagnostic::{Diagnostic, Rule};
use crate::project::rules;
use crate::script::{
    Contract, LoadProblem, MAX_SOURCE, Parameter, PathGrant, Permissions, Returned, Script, check_script,
};
use crate::spec::{Tool, ToolKind};
use crate::text::{Location, SourceFile, SourceId, Span, count};
use crate::tool::{ToolError, ToolErrorKind};

/// Looks for the scripts of every normal tool of `load`. Without a project there are none to look for.
pub(super) fn load_scripts(load: &mut Load, from: &Path) {
    let mut files = Files::default();
    let mut told_elisp = Vec::new();
    for index in 0..load.tools.len() {
        let Some(loaded) = load.tools.get(index) else { continue };
        // A broken spec is told already; what its script lacks may follow from that.
        if loaded.tool.kind == ToolKind::Exit || !loaded.tool.valid {
            continue;
        }
        let tool = loaded.tool.clone();
        let Some(root) = load.roots.get(&tool.source).cloned() else { continue };
        let root = std::path::absolute(&root).unwrap_or(root);
        let state = match find_script(&root, &tool) {
            Some(path) => load_script(load, &mut files, &tool, &root, &path, from),
            None => {
                let error = tell_missing(load, &tool, &root, from, &mut told_elisp);
                ScriptState::Broken(error)
            }
        };
        if let Some(loaded) = load.tools.get_mut(index) {
            loaded.script = state;
        }
    }
    load.sort_findings();
}

/// The script files of one load: several tools may name the same.
type Files = HashMap<PathBuf, ScriptFile>;

struct ScriptFile {
    /// It as the script of no tool yet, or why it cannot be read.
    script: Result<Script, String>,
    /// Its number among the sources, once a finding is about it.
    source: Option<SourceId>,
    /// Whether it was told that it does not compile, which is the same for every tool.
    is_told: bool,
}

/// The files that a change of which may change this load: the places where scripts are looked for.
pub(super) fn script_places(root: &Path, tool: &Tool) -> Vec<PathBuf> {
    match &tool.script {
        Some(path) => vec![root.join(&path.value)],
        None => {
            let scripts = root.join("scripts");
            ["lua", "luau"].map(|extension| scripts.join(format!("{}.{extension}", tool.name.value))).to_vec()
        }
    }
}

pub(super) fn find_script(root: &Path, tool: &Tool) -> Option<PathBuf> {
    script_places(root, tool).into_iter().find(|path| path.exists())
}

fn tell_missing(
    load: &mut Load,
    tool: &Tool,
    root: &Path,
    from: &Path,
    told_elisp: &mut Vec<crate::text::SourceId>,
) -> ToolError {
    let name = &tool.name.value;
    let wanted = script_places(root, tool).first().map_or_else(String::new, |path| display_name(path, from));
    let message = format!("`{name}` has no script: {wanted} is not there");
    let span = tool.script.as_ref().map_or(tool.name.span, |script| script.span);
    let location = Location { source: tool.source, span };
    if tool.has_function {
        // People check their Emacs configuration: a page of these would hide what is wrong in it.
        if !told_elisp.contains(&tool.source) {
            told_elisp.push(tool.source);
            let message = format!(
                "`{name}` is implemented in Emacs Lisp; deftool checks and compiles it, and cannot run it"
            );
            let note = format!("to run it here, write {wanted}; further tools of this file are not told");
            load.findings.push(Diagnostic::new(&rules::EMACS_LISP_ONLY, location, message).note(note));
        }
    } else {
        let note = "a script returns one function that takes the arguments in :args order";
        load.findings.push(Diagnostic::new(&rules::MISSING_SCRIPT, location, message.clone()).note(note));
    }
    ToolError::new(ToolErrorKind::Load, message)
}

fn load_script(
    load: &mut Load,
    files: &mut Files,
    tool: &Tool,
    root: &Path,
    path: &Path,
    from: &Path,
) -> ScriptState {
    let name = display_name(path, from);
    let file = files.entry(path.to_owned()).or_insert_with(|| {
        let script = read_bytes(path).map(|bytes| Script::new("", &name, bytes));
        ScriptFile { script: script.map_err(|error| error.to_string()), source: None, is_told: false }
    });
    let mut script = match &file.script {
        Ok(script) => script.for_tool(&tool.name.value),
        Err(error) => {
            let message = format!("the script of `{}` cannot be read: {name}: {error}", tool.name.value);
            let location = Location { source: tool.source, span: tool.name.span };
            load.findings.push(Diagnostic::new(&rules::UNREADABLE, location, message.clone()));
            return ScriptState::Broken(ToolError::new(ToolErrorKind::Load, message));
        }
    };
    script.parameters = tool
        .arguments
        .iter()
        .map(|argument| Parameter {
            name: argument.name.value.clone(),
            integer: argument.type_name() == Some("integer"),
        })
        .collect();
    script.is_async = tool.is_async;
    script.timeout = tool.timeout;
    script.memory = tool.memory;
    script.permissions = resolve_permissions(tool, root);
    let broken = match check_script(&script) {
        Err(problem) => Some(tell_problem(load, file, &script, &problem)),
        Ok(contract) => tell_contract(load, file, tool, &script, &contract),
    };
    match broken {
        Some(error) => ScriptState::Broken(error),
        None => ScriptState::Ready(Arc::new(script)),
    }
}

/// At most one byte more than a script may have, so that a huge or endless file is refused by its length.
fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_SOURCE as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn resolve_permissions(tool: &Tool, root: &Path) -> Permissions {
    let resolve = |names: &[String]| names.iter().map(|name| PathGrant::new(name, root.join(name))).collect();
    let allow = &tool.permissions;
    Permissions {
        net: allow.net.clone(),
        read: resolve(&allow.read),
        write: resolve(&allow.write),
        run: allow.run.clone(),
        env: allow.env.clone(),
    }
}

fn tell_problem(load: &mut Load, file: &mut ScriptFile, script: &Script, problem: &LoadProblem) -> ToolError {
    if std::mem::replace(&mut file.is_told, true) {
        return ToolError::new(ToolErrorKind::Load, problem.to_string());
    }
    let message = format!("the script of `{}` does not compile: {}", script.tool, problem.message);
    tell_in_script(
        load,
        file,
        script,
        &rules::SCRIPT_DOES_NOT_COMPILE,
        problem.line.unwrap_or(1),
        message,
        &[],
    );
    ToolError::new(ToolErrorKind::Load, problem.to_string())
}

fn tell_contract(
    load: &mut Load,
    file: &mut ScriptFile,
    tool: &Tool,
    script: &Script,
    contract: &Contract,
) -> Option<ToolError> {
    let (message, line, rule, notes) = match &contract.returned {
        Returned::Unknown => return None,
        Returned::NoFunction(what) => {
            let message =
                format!("the script of `{}` returns {what}; it must return a function", script.tool);
            (message, 1, &rules::SCRIPT_WITHOUT_FUNCTION, vec![])
        }
        Returned::Function { parameters, is_vararg, line } => {
            let mut expected: Vec<&str> = tool.arguments.iter().map(|a| a.name.value.as_str()).collect();
            if tool.is_async {
                expected.insert(0, "callback");
            }
            if parameters.len() == expected.len() || (*is_vararg && parameters.len() < expected.len()) {
                return None;
            }
            let message = format!(
                "the function of `{}` takes {} and the spec gives {}",
                script.tool,
                count(parameters.len(), "parameter"),
                count(expected.len(), "argument"),
            );
            let mut notes = vec![format!("write `function({})`", expected.join(", "))];
            if tool.is_async {
                notes.push(String::from("the spec says `:async t`, so the callback comes first"));
            }
            (message, *line, &rules::SCRIPT_ARITY, notes)
        }
    };
    tell_in_script(load, file, script, rule, line, message.clone(), &notes);
    Some(ToolError::new(ToolErrorKind::Load, format!("{}:{line}: {message}", script.file)))
}

/// A finding at a line of the script, which thereby becomes one of the sources.
fn tell_in_script(
    load: &mut Load,
    file: &mut ScriptFile,
    script: &Script,
    rule: &'static Rule,
    line: usize,
    message: String,
    notes: &[String],
) {
    let source = *file.source.get_or_insert_with(|| {
        load.sources.add(SourceFile::new(&*script.file, String::from_utf8_lossy(&script.source).into_owned()))
    });
    let text = load.sources.get(source).map_or("", |file| &file.text);
    let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let of_line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or("");
    let indent = of_line.len() - of_line.trim_start().len();
    let span = Span::new(start + indent, start + of_line.trim_end().len().max(indent));
    let mut finding = Diagnostic::new(rule, Location { source, span }, message);
    finding.notes.extend(notes.iter().cloned());
    load.findings.push(finding);
}
