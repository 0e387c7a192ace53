//! The definitions in a file and in a project.

use std::path::{Path, PathBuf};

use deftool_lang::spec::ToolKind;
use deftool_lang::spec::reference::Plist;
use deftool_lang::text::Span;

use crate::outline::{Outline, Role};
use crate::project::Project;

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The name. Empty if it is missing.
    pub name: String,
    /// The kind.
    pub kind: SymbolKind,
    /// The whole form.
    pub span: Span,
    /// The name in the form.
    pub name_span: Span,
    /// The definitions inside: the arguments of a tool.
    pub children: Vec<Symbol>,
}

/// The kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// A tool.
    Tool,
    /// An exit tool.
    ExitTool,
    /// A worker.
    Worker,
    /// An MCP server.
    Mcp,
    /// The levels of rules.
    Project,
    /// An argument.
    Argument,
    /// A function in a script.
    Function,
    /// A variable in a script.
    Variable,
    /// A test in a test script, or an ask of the project.
    Test,
}

/// Returns the definitions in a spec file, in source order. Incomplete forms are included.
pub fn symbols(project: &Project, path: &Path) -> Vec<Symbol> {
    let Some(outline) = Outline::of(project, path) else { return Vec::new() };
    let symbol = |list, kind| {
        let span = outline.span(list);
        let name = outline.value_of(list, "name").or_else(|| outline.value_of(list, "prompt"));
        Symbol {
            name: name.map_or_else(String::new, |name| outline.word(name).to_owned()),
            kind,
            span,
            name_span: name.map_or(Span::at(span.start as usize), |name| outline.span(name)),
            children: Vec::new(),
        }
    };
    let of_form = |(index, form): (usize, &crate::outline::Form)| {
        let kind = match form.plist {
            Plist::Exit => SymbolKind::ExitTool,
            Plist::Worker => SymbolKind::Worker,
            Plist::Mcp => SymbolKind::Mcp,
            Plist::Dialect | Plist::Project => SymbolKind::Project,
            Plist::ProjectAsk => SymbolKind::Test,
            _ => SymbolKind::Tool,
        };
        let arguments =
            outline.form_parts(index).filter(|part| matches!(part.role, Role::Plist(Plist::Argument)));
        let children = arguments.map(|part| symbol(part.node, SymbolKind::Argument)).collect();
        Symbol { children, ..symbol(form.node, kind) }
    };
    outline.forms.iter().enumerate().map(of_form).collect()
}

/// Returns the tools and workers of the project whose names contain `query`, case-insensitively, at most `most`.
pub fn project_symbols(project: &Project, query: &str, most: usize) -> Vec<(PathBuf, Symbol)> {
    let query = query.to_lowercase();
    let load = project.load();
    let tools = load.tools.iter().map(|loaded| {
        let kind = match loaded.tool.kind {
            ToolKind::Normal => SymbolKind::Tool,
            ToolKind::Exit => SymbolKind::ExitTool,
        };
        (Some(loaded.tool.source), kind, loaded.tool.span, &loaded.tool.name)
    });
    let workers =
        load.workers.iter().map(|worker| (worker.source, SymbolKind::Worker, worker.span, &worker.name));
    let found = tools.chain(workers).filter(|(.., name)| name.value.to_lowercase().contains(&query));
    let symbol = |(source, kind, span, name): (Option<_>, _, _, &deftool_lang::text::Spanned<String>)| {
        let symbol =
            Symbol { name: name.value.clone(), kind, span, name_span: name.span, children: Vec::new() };
        Some((project.path_of(source?)?, symbol))
    };
    found.filter_map(symbol).take(most).collect()
}
