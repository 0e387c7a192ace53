//! Tools, arguments and workers, and everything in specs and scripts that refers to them.

use std::path::{Path, PathBuf};

use deftool_lang::spec::reference::{KeyValue, Plist};
use deftool_lang::spec::{
    Ask, Confirm, Json, JsonKind, PatternKind, Template, Tool, ToolCommand, WorkerSpec,
};
use deftool_lang::text::{Location, Span};
use deftool_project::{LoadedTool, ScriptState, is_test_script};
use deftool_script::{Returned, find_requires, module_path, words};

use crate::model::Entity;
use crate::outline::{Outline, Part, Role};
use crate::project::{FileSpan, Language, Project};
use crate::usages::{entity_in_test, usages_of};

/// Returns where the entity at `offset` is defined. For the name of a tool in its definition, and for a script that is
/// named in a spec, this is the script; for a `require`, the module.
pub fn definition(project: &Project, path: &Path, offset: usize) -> Vec<FileSpan> {
    if Language::of(path) == Some(Language::Script)
        && let Some(module) = required_module(project, path, offset)
    {
        return vec![FileSpan { path: module, span: Span::default() }];
    }
    if let Some(script) = named_script(project, path, offset) {
        return vec![script];
    }
    let Some(entity) = entity_at(project, path, offset) else { return Vec::new() };
    let definitions = definitions_of(project, &entity);
    let is_here = |found: &FileSpan| found.path == path && found.span.range().contains(&offset);
    if let (true, Entity::Tool(name)) = (definitions.iter().any(is_here), &entity) {
        let scripts: Vec<FileSpan> =
            project.tools_called(name).filter_map(|loaded| script_start(project, loaded)).collect();
        if !scripts.is_empty() {
            return scripts;
        }
    }
    definitions
}

/// Returns everything that refers to the entity at `offset`, in file order.
pub fn references(project: &Project, path: &Path, offset: usize, with_definition: bool) -> Vec<FileSpan> {
    let Some(entity) = entity_at(project, path, offset) else { return Vec::new() };
    let mut found = references_of(project, &entity);
    found.extend(usages_of(project, &entity));
    if let Entity::Tool(name) = &entity {
        found.extend(project.tools_called(name).filter_map(|loaded| script_start(project, loaded)));
    }
    if with_definition {
        found.extend(definitions_of(project, &entity));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the entity at `offset`.
pub(crate) fn entity_at(project: &Project, path: &Path, offset: usize) -> Option<Entity> {
    match Language::of(path)? {
        Language::Script => {
            let text = project.text(path)?;
            if is_test_script(path)
                && let Some(entity) = entity_in_test(&text, offset)
            {
                return Some(entity);
            }
            let word = words(&text).into_iter().find(|word| {
                !word.is_field && word.start <= offset && offset <= word.start + word.text.len()
            })?;
            let loaded = project.tools_of_script(path).next()?;
            let tool = loaded.tool.name.value.clone();
            let is_parameter = loaded.tool.arguments.iter().any(|argument| argument.name.value == word.text);
            if is_parameter && parameters(loaded).iter().any(|name| name == word.text) {
                return Some(Entity::Argument { tool, name: word.text.to_owned() });
            }
            // The header of the function stands for the tool.
            let header = script_start(project, loaded)?.span;
            header.range().contains(&word.start).then_some(Entity::Tool(tool))
        }
        Language::Spec => {
            let outline = Outline::of(project, path)?;
            entity_of(&outline, &outline.part_at(offset)?)
        }
    }
}

/// Returns what a part of a spec file names.
pub(crate) fn entity_of(outline: &Outline, part: &Part) -> Option<Entity> {
    let name = outline.word(part.node).to_owned();
    let tool = || outline.tool_at(part.form, outline.span(part.node).start as usize).map(str::to_owned);
    match part.role {
        Role::Value(Plist::Tool | Plist::Exit, key) if key.name == "name" => Some(Entity::Tool(name)),
        Role::Value(Plist::Worker, key) if key.name == "name" => Some(Entity::Worker(name)),
        Role::Value(_, key) if matches!(key.value, KeyValue::Tools(_)) => Some(Entity::Tool(name)),
        Role::Tool => Some(Entity::Tool(name)),
        Role::Value(_, key) if matches!(key.value, KeyValue::Arguments) => {
            Some(Entity::Argument { tool: tool()?, name })
        }
        Role::Value(Plist::Argument, key) if key.name == "name" => {
            Some(Entity::Argument { tool: tool()?, name })
        }
        Role::CallKey => {
            let name = name.trim_start_matches(':').to_owned();
            Some(Entity::Argument { tool: tool()?, name })
        }
        _ => None,
    }
}

/// Returns the spans of the names in the definitions of an entity, with quotation marks.
pub(crate) fn definitions_of(project: &Project, entity: &Entity) -> Vec<FileSpan> {
    let at = |source, span| project.at(Location { source, span });
    match entity {
        Entity::Tool(name) => project
            .tools_called(name)
            .filter_map(|loaded| at(loaded.tool.source, loaded.tool.name.span))
            .collect(),
        Entity::Argument { tool, name } => {
            let tools = project.tools_called(tool);
            let named = tools.flat_map(|loaded| {
                let arguments = loaded.tool.arguments.iter().filter(|argument| argument.name.value == *name);
                arguments.map(|argument| (loaded.tool.source, argument.name.span))
            });
            named.filter_map(|(source, span)| at(source, span)).collect()
        }
        Entity::Worker(name) => {
            let workers = project.load().workers.iter().filter(|worker| worker.name.value == *name);
            workers.filter_map(|worker| at(worker.source?, worker.name.span)).collect()
        }
    }
}

/// Returns the references to an entity in specs and scripts without its definitions: names in workers with quotation
/// marks, names in asks, keys of examples, asks and conditions with their colons, placeholders with braces, variables of
/// scripts.
pub(crate) fn references_of(project: &Project, entity: &Entity) -> Vec<FileSpan> {
    let at = |source, span| project.at(Location { source, span });
    match entity {
        Entity::Tool(name) => {
            let lists = |worker: &WorkerSpec| {
                let names = worker.tools.iter().chain(&worker.exit_tools).flatten();
                let named = names.filter(|listed| listed.value == *name);
                named.filter_map(|listed| at(worker.source?, listed.span)).collect::<Vec<_>>()
            };
            let of_asks = project.load().written_asks().flat_map(|ask| {
                let past = ask.history.iter().map(|call| &call.tool);
                // The call of a tool's own ask has the name in its definition.
                let calls = ask.calls().iter().map(|call| &call.tool);
                let written = past.chain(calls.filter(|tool| ask.span.contains(tool.span)));
                let named = written.filter(|tool| tool.value == *name);
                named.filter_map(|tool| at(ask.source, tool.span)).collect::<Vec<_>>()
            });
            project.load().workers.iter().flat_map(lists).chain(of_asks).collect()
        }
        Entity::Argument { tool, name } => {
            let mut found = Vec::new();
            for loaded in project.tools_called(tool) {
                found.extend(
                    keys_of(&loaded.tool, name).into_iter().filter_map(|span| at(loaded.tool.source, span)),
                );
                found.extend(placeholders(project, loaded, name));
                found.extend(variables(project, loaded, name));
            }
            for ask in project.load().written_asks() {
                found.extend(
                    names_in_ask(ask, tool, name).into_iter().filter_map(|span| at(ask.source, span)),
                );
            }
            found
        }
        Entity::Worker(_) => Vec::new(),
    }
}

/// Returns the names in an ask that name an argument of a tool.
fn names_in_ask(ask: &Ask, tool: &str, name: &str) -> Vec<Span> {
    let mut found = Vec::new();
    for call in ask.calls().iter().filter(|call| call.tool.value == tool) {
        let stated = match call.arguments.as_ref().map(|pattern| &pattern.kind) {
            Some(PatternKind::Object(members)) => members.as_slice(),
            _ => &[],
        };
        let names = stated.iter().map(|(name, _)| name).chain(&call.ignored);
        found.extend(names.filter(|stated| stated.value == name).map(|stated| stated.span));
    }
    for call in ask.history.iter().filter(|call| call.tool.value == tool) {
        found.extend(call.arguments.get(name).map(|member| member.key_span));
    }
    found
}

/// Returns the keys of examples and conditions that name an argument.
fn keys_of(tool: &Tool, name: &str) -> Vec<Span> {
    let conditions = match &tool.confirm {
        Confirm::When(conditions) => conditions.as_slice(),
        Confirm::Never | Confirm::Always => &[],
    };
    let accepts = tool.accepts.iter().map(|sample| &sample.arguments);
    let objects = accepts.chain(&tool.rejects).chain(conditions);
    let keys = |json: &Json| match &json.kind {
        JsonKind::Object(members) => {
            members.iter().filter(|member| member.key == name).map(|member| member.key_span).collect()
        }
        _ => Vec::new(),
    };
    objects.flat_map(keys).collect()
}

/// Returns the placeholders of an argument in the command of a tool.
fn placeholders(project: &Project, loaded: &LoadedTool, name: &str) -> Vec<FileSpan> {
    let mut found = Vec::new();
    for template in loaded.tool.command.iter().flat_map(ToolCommand::templates) {
        let at = Location { source: loaded.tool.source, span: template.span };
        let Some(FileSpan { path, span }) = project.at(at) else { continue };
        let text = project.text(&path).unwrap_or_default();
        let start = span.start as usize;
        found.extend(Template::find(span.of(&text), name).into_iter().map(|within| {
            let span = Span::new(start + within.start, start + within.end);
            FileSpan { path: path.clone(), span }
        }));
    }
    found
}

/// Returns the uses of the parameter `name` in the script of a tool.
fn variables(project: &Project, loaded: &LoadedTool, name: &str) -> Vec<FileSpan> {
    let Some(path) = project.script_of(loaded) else { return Vec::new() };
    let Some(text) = project.text(&path).filter(|_| parameters(loaded).iter().any(|known| known == name))
    else {
        return Vec::new();
    };
    let uses = words(&text).into_iter().filter(|word| !word.is_field && word.text == name);
    let span = |start: usize| Span::new(start, start + name.len());
    uses.map(|word| FileSpan { path: path.clone(), span: span(word.start) }).collect()
}

/// Returns the parameters of the function that the script of a tool returns.
pub(crate) fn parameters(loaded: &LoadedTool) -> Vec<String> {
    match contract(loaded) {
        Some(Returned::Function { parameters, .. }) => parameters.clone(),
        _ => Vec::new(),
    }
}

fn contract(loaded: &LoadedTool) -> Option<&Returned> {
    let ScriptState::Ready(script) = &loaded.script else { return None };
    script.contract().ok().map(|contract| &contract.returned)
}

/// Returns the line at which the function of a tool starts.
pub(crate) fn script_start(project: &Project, loaded: &LoadedTool) -> Option<FileSpan> {
    let path = project.script_of(loaded)?;
    let line = match contract(loaded) {
        Some(Returned::Function { line, .. }) => *line,
        _ => 1,
    };
    let text = project.text(&path)?;
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    let length = rest.lines().next().unwrap_or_default().len();
    Some(FileSpan { path, span: Span::new(start, start + length) })
}

/// Returns the script that the `:script` at `offset` names.
fn named_script(project: &Project, path: &Path, offset: usize) -> Option<FileSpan> {
    let is_at = |span: Span| span.range().contains(&offset);
    let is_named =
        |loaded: &&LoadedTool| loaded.tool.script.as_ref().is_some_and(|script| is_at(script.span));
    script_start(project, project.tools_in(path).find(is_named)?)
}

/// Returns the module that the `require` on the line of `offset` names.
fn required_module(project: &Project, path: &Path, offset: usize) -> Option<PathBuf> {
    let text = project.text(path)?;
    let line = text.get(..offset)?.matches('\n').count() + 1;
    let require = find_requires(text.as_bytes()).into_iter().find(|require| require.line == line)?;
    let module = module_path(&path.to_string_lossy(), &require.path?).ok()?;
    ["lua", "luau"]
        .map(|extension| PathBuf::from(format!("{module}.{extension}")))
        .into_iter()
        .find(|file| project.exists(file))
}
