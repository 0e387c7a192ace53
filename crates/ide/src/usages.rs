//! Names of tools and arguments in files that `check` does not read as specs or scripts of tools: test scripts, the
//! modules that they share, and scenarios of `deftool stub`. Also the files that a rename does not edit.

use std::fmt;
use std::path::{Path, PathBuf};

use deftool_lang::diagnostic::Severity;
use deftool_lang::syntax::{Kind, NodeId, Tree, parse, quoted};
use deftool_lang::text::{Sources, Span};
use deftool_project::is_test_script;
use deftool_script::{Module, find_mentions, test_uses};

use crate::model::Entity;
use crate::project::{FileSpan, Language, Project};

/// Something that a rename does not edit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unedited {
    /// The location: `file` or `file:line:column`.
    pub at: String,
    /// The reason.
    pub why: &'static str,
}

impl fmt::Display for Unedited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.why)
    }
}

/// The uses of an entity in one file.
#[derive(Debug, Default)]
pub(crate) struct Usages {
    /// The names: in scripts without quotation marks, in scenarios with quotation marks or colons.
    pub(crate) found: Vec<Span>,
    /// Places that may contain the name.
    pub(crate) uncertain: Vec<(Span, &'static str)>,
    /// The first error. There may be more uses than those that were found.
    pub(crate) error: Option<(Span, String)>,
}

const COMPUTED_NAME: &str = "the name of the tool is computed here";
const MAY_BE_ARGUMENT: &str = "this may be the argument, but the call is not certain";
const IN_TEXT: &str = "the text may name it";
const RECORDED: &str = "recordings and journals are not edited";
const TOO_MANY_FILES: &str = "the project has too many files; not all were searched";

/// Returns the test scripts, the modules and the scenarios of a project, and whether the search was cut off.
pub(crate) fn usage_files(project: &Project) -> (Vec<PathBuf>, bool) {
    let found = project.find_files(&["lua", "luau", "eld", "lisp", "sexp"]);
    let lib = project.root().join("scripts/lib");
    let is_usage = |path: &PathBuf| match Language::of(path) {
        Some(Language::Script) => is_test_script(path) || path.starts_with(&lib),
        Some(Language::Spec) => project.text(path).is_some_and(|text| text.contains("(defscenario")),
        None => false,
    };
    (found.paths.into_iter().filter(is_usage).collect(), found.is_cut_off)
}

/// Returns the names of the entity in the files of [`usage_files`].
pub(crate) fn usages_of(project: &Project, entity: &Entity) -> Vec<FileSpan> {
    let (files, _) = usage_files(project);
    let spans = files.into_iter().flat_map(|path| {
        let found = usages_in(project, &path, entity).found;
        found.into_iter().map(move |span| FileSpan { path: path.clone(), span })
    });
    spans.collect()
}

/// Returns the uses of an entity in a test script, module or scenario.
pub(crate) fn usages_in(project: &Project, path: &Path, entity: &Entity) -> Usages {
    let (Entity::Tool(name) | Entity::Argument { name, .. }) = entity else { return Usages::default() };
    let text = project.text(path).unwrap_or_default();
    // Most files contain nothing.
    match Language::of(path) {
        _ if !text.contains(name.as_str()) && !text.contains("tool.load") => Usages::default(),
        Some(Language::Script) => in_script(&text, name, entity),
        Some(Language::Spec) if text.contains(name.as_str()) => Scenario::of(&text).usages(entity),
        Some(Language::Spec) | None => Usages::default(),
    }
}

/// Returns the tool or argument at `offset` of a test script.
pub(crate) fn entity_in_test(text: &str, offset: usize) -> Option<Entity> {
    let uses = test_uses(text);
    let is_at = |span: Span| span.start as usize <= offset && offset <= span.end as usize;
    let loaded = uses.loads.into_iter().find(|load| is_at(load.span));
    loaded.map(|load| Entity::Tool(load.name)).or_else(|| {
        let key = uses.keys.into_iter().find(|key| is_at(key.span))?;
        Some(Entity::Argument { tool: key.tool, name: key.name })
    })
}

fn in_script(text: &str, name: &str, entity: &Entity) -> Usages {
    let uses = test_uses(text);
    let mut usages = Usages::default();
    match entity {
        Entity::Tool(_) => {
            let named = uses.loads.iter().filter(|load| load.name == name);
            usages.found.extend(named.map(|load| load.span));
            usages.uncertain.extend(uses.computed_loads.iter().map(|span| (*span, COMPUTED_NAME)));
        }
        Entity::Argument { tool, .. } => {
            let keys = uses.keys.iter().filter(|key| key.tool == *tool && key.name == name);
            usages.found.extend(keys.map(|key| key.span));
            let is_computed = uses.computed_calls.iter().any(|(called, _)| called == tool)
                || !uses.computed_loads.is_empty();
            if is_computed {
                let mentions = find_mentions(text, name).into_iter();
                let of_others = |span: &Span| uses.keys.iter().any(|key| key.span == *span);
                let uncertain = mentions.filter(|span| !of_others(span));
                usages.uncertain.extend(uncertain.map(|span| (span, MAY_BE_ARGUMENT)));
            }
        }
        Entity::Worker(_) => {}
    }
    if text.contains(name)
        && let Err(error) = Module::new("", text).contract()
    {
        let line = error.line.unwrap_or(1);
        let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        usages.error = Some((Span::at(start), error.message.clone()));
    }
    usages
}

/// A file with scenarios.
struct Scenario<'t> {
    text: &'t str,
    tree: Tree,
    error: Option<(Span, String)>,
}

impl<'t> Scenario<'t> {
    fn of(text: &'t str) -> Self {
        let (tree, findings) = parse(Sources::new().id_ahead(0), text);
        let error = findings.into_iter().find(|finding| finding.severity == Severity::Error);
        Self { text, tree, error: error.map(|error| (error.primary.span, error.message)) }
    }

    fn text_of(&self, node: NodeId) -> &str {
        self.tree.text(node, self.text)
    }

    fn is_list_of(&self, node: NodeId, head: &str) -> bool {
        self.tree.kind(node) == Kind::List
            && self.tree.children(node).next().is_some_and(|first| self.text_of(first) == head)
    }

    fn usages(&self, entity: &Entity) -> Usages {
        let mut usages = Usages { error: self.error.clone(), ..Usages::default() };
        let mut pending: Vec<NodeId> =
            self.tree.roots().filter(|root| self.is_list_of(*root, "defscenario")).collect();
        let mut strings = Vec::new();
        while let Some(node) = pending.pop() {
            let mut before = None;
            for child in self.tree.children(node) {
                if before.is_some_and(|key| self.text_of(key) == ":tools") {
                    usages.found.extend(self.names(child, entity));
                }
                let is_name = before.is_some_and(|key| self.text_of(key) == ":name");
                if self.tree.kind(child) == Kind::String && !is_name {
                    strings.push(child);
                }
                before = Some(child);
                pending.push(child);
            }
            if self.is_list_of(node, "call") {
                usages.found.extend(self.names_in_call(node, entity));
            }
        }
        usages.found.sort_unstable();
        let (Entity::Tool(name) | Entity::Argument { name, .. } | Entity::Worker(name)) = entity;
        let others = strings.into_iter().map(|node| self.tree.span(node));
        let others = others.filter(|span| {
            let text = span.of(self.text);
            let is_named = text == quoted(name) || text.contains(&format!("\\\"{name}\\\""));
            is_named && !usages.found.contains(span)
        });
        usages.uncertain = others.map(|span| (span, IN_TEXT)).collect();
        usages.uncertain.sort_unstable();
        usages
    }

    /// Returns the name of the tool among the elements of a list of tools.
    fn names(&self, list: NodeId, entity: &Entity) -> Vec<Span> {
        let Entity::Tool(name) = entity else { return Vec::new() };
        let named = self.tree.children(list).filter(|element| self.text_of(*element) == quoted(name));
        named.map(|element| self.tree.span(element)).collect()
    }

    /// Returns the name in `(call "NAME" (:key value …))`.
    fn names_in_call(&self, call: NodeId, entity: &Entity) -> Vec<Span> {
        let mut parts = self.tree.children(call).skip(1);
        let (Some(called), arguments) = (parts.next(), parts.next()) else { return Vec::new() };
        let is_of = |tool: &str| self.text_of(called) == quoted(tool);
        match entity {
            Entity::Tool(name) if is_of(name) => vec![self.tree.span(called)],
            Entity::Argument { tool, name } if is_of(tool) => {
                let is_list = |node: &NodeId| self.tree.kind(*node) == Kind::List;
                let members = arguments.filter(is_list).into_iter().flat_map(|list| self.tree.children(list));
                let keys = members.step_by(2).filter(|key| self.text_of(*key) == format!(":{name}"));
                keys.map(|key| self.tree.span(key)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the recordings, journals and played files that contain the name of the entity, which a rename does not edit.
pub(crate) fn recorded(project: &Project, entity: &Entity) -> Vec<Unedited> {
    let names: Vec<&str> = match entity {
        Entity::Tool(name) => vec![name],
        Entity::Argument { tool, name } => vec![tool, name],
        Entity::Worker(_) => return Vec::new(),
    };
    let found = project.find_files(&["jsonl", "journal", "sse"]).containing(&names);
    let shown = |path: PathBuf| deftool_project::display_name(&path, project.root());
    found.paths.into_iter().map(|path| Unedited { at: shown(path), why: RECORDED }).collect()
}

/// The notice that not all files of the project were searched.
pub(crate) fn cut_off() -> Unedited {
    Unedited { at: String::from("."), why: TOO_MANY_FILES }
}
