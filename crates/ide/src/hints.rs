//! Inlay hints and code lenses.

use std::collections::HashMap;
use std::path::Path;

use deftool_lang::spec::reference::Plist;
use deftool_lang::spec::{Argument, ToolKind};
use deftool_lang::text::Span;
use deftool_project::LoadedTool;
use deftool_script::words;

use crate::entity::{parameters, script_start};
use crate::outline::Outline;
use crate::project::{Language, Project};

/// A text to show at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The byte offset.
    pub offset: usize,
    /// The text.
    pub label: String,
}

/// An action for a tool, shown above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lens {
    /// The span of the tool.
    pub span: Span,
    /// The action.
    pub kind: LensKind,
    /// The name of the tool.
    pub tool: String,
}

/// The action of a lens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LensKind {
    /// Call the tool.
    Call,
    /// Test the tool.
    Test,
    /// Show the compiled schema.
    Compile,
}

/// Returns the hints of a file: the script of each tool in a spec, the types of the parameters in a script.
pub fn hints(project: &Project, path: &Path) -> Vec<Hint> {
    match Language::of(path) {
        Some(Language::Spec) => {
            let implicit = project.tools_in(path).filter(|loaded| loaded.tool.script.is_none());
            let hint = |loaded: &LoadedTool| {
                let script = project.script_of(loaded)?;
                let label = deftool_project::display_name(&script, project.root());
                Some(Hint { offset: loaded.tool.name.span.end as usize, label })
            };
            implicit.filter_map(hint).collect()
        }
        Some(Language::Script) => parameter_types(project, path).unwrap_or_default(),
        None => Vec::new(),
    }
}

fn parameter_types(project: &Project, path: &Path) -> Option<Vec<Hint>> {
    let loaded = project.tools_of_script(path).next()?;
    let text = project.text(path)?;
    let start = script_start(project, loaded)?.span.start as usize;
    let all = words(&text);
    let mut header = all.iter().skip_while(|word| word.start < start || word.text != "function").skip(1);
    let hint = |parameter: String| {
        let word = header.next().filter(|word| word.text == parameter)?;
        let end = word.start + word.text.len();
        let has_type = text.get(end..)?.trim_start().starts_with(':');
        let argument = loaded.tool.arguments.iter().find(|argument| argument.name.value == parameter)?;
        (!has_type).then(|| Hint { offset: end, label: format!(": {}", luau_type(argument)) })
    };
    Some(parameters(loaded).into_iter().filter_map(hint).collect())
}

fn luau_type(argument: &Argument) -> String {
    let of_type = match argument.type_name() {
        Some("integer" | "number") => "number",
        Some("string") => "string",
        Some("boolean") => "boolean",
        Some("array" | "object") => "table",
        _ => "any",
    };
    format!("{of_type}{}", if argument.optional { "?" } else { "" })
}

/// Returns the lenses of a spec file.
pub fn lenses(project: &Project, path: &Path) -> Vec<Lens> {
    let Some(outline) = Outline::of(project, path) else { return Vec::new() };
    let valid = project.tools_in(path).filter(|loaded| loaded.tool.valid);
    let valid: HashMap<Span, &LoadedTool> = valid.map(|loaded| (loaded.tool.span, loaded)).collect();
    let tools = outline.forms.iter().filter(|form| matches!(form.plist, Plist::Tool | Plist::Exit));
    let lenses = tools.flat_map(|form| {
        let span = outline.span(form.node);
        let loaded = valid.get(&span);
        let kinds: &[LensKind] = match loaded {
            None => &[],
            Some(loaded) if loaded.tool.kind == ToolKind::Exit || loaded.tool.function.is_some() => {
                &[LensKind::Compile]
            }
            Some(_) => &[LensKind::Call, LensKind::Test, LensKind::Compile],
        };
        let tool = loaded.map_or("", |loaded| &loaded.tool.name.value);
        kinds.iter().map(move |kind| Lens { span, kind: *kind, tool: tool.to_owned() }).collect::<Vec<_>>()
    });
    lenses.collect()
}
