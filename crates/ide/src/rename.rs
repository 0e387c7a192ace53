//! Rename of tools, arguments and workers in specs, scripts and workers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deftool_lang::diagnostic::{Diagnostic, Edit, Fix, Group, Severity, apply_fixes};
use deftool_lang::spec::{ToolKind, is_tool_name};
use deftool_lang::syntax::quoted;
use deftool_lang::text::Span;
use deftool_project::{LoadedTool, ScriptState};
use deftool_script::{is_same_code, words};

use crate::entity::{Entity, definitions_of, entity_at, parameters, references_of};
use crate::project::{FileSpan, Language, Project};

/// The changes of a rename.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rename {
    /// The edits of each file, in source order.
    pub edits: BTreeMap<PathBuf, Vec<Edit>>,
    /// Files to move, after the edits: the old and the new path.
    pub moves: Vec<(PathBuf, PathBuf)>,
}

/// The reason why a rename is not possible. Nothing is changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenameError {
    /// There is nothing to rename.
    #[error("no tool, argument or worker at this position")]
    Nothing,
    /// The new name is invalid.
    #[error("invalid name `{name}`: {why}")]
    Invalid {
        /// The name.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// The new name is in use.
    #[error("`{name}` already exists at {at}")]
    Exists {
        /// The name.
        name: String,
        /// The location, `file:line:column`.
        at: String,
    },
    /// A file has errors, so references in it may be unknown.
    #[error("fix the error at {at} first, because references to `{name}` may be missed: {message}")]
    Broken {
        /// The old name.
        name: String,
        /// The location, `file:line:column`.
        at: String,
        /// The error.
        message: String,
    },
    /// A name is not a plain string, but an expression, a symbol or a string with escapes.
    #[error("the name at {at} is not a plain string; change it by hand")]
    Computed {
        /// The location, `file:line:column`.
        at: String,
    },
    /// The script would compile to different code.
    #[error("the rename would change what {file} does; rename the parameter there by hand first")]
    Meaning {
        /// The script.
        file: String,
    },
}

/// Returns the span and the current name of the entity at `offset`, before a rename.
///
/// # Errors
/// If there is nothing to rename.
pub fn rename_target(project: &Project, path: &Path, offset: usize) -> Result<(Span, String), RenameError> {
    let entity = entity_at(project, path, offset).ok_or(RenameError::Nothing)?;
    let name = name_of(&entity).to_owned();
    let at = |found: &FileSpan| {
        found.path == path && found.span.start as usize <= offset && offset <= found.span.end as usize
    };
    let found = definitions_of(project, &entity).into_iter().chain(references_of(project, &entity)).find(at);
    let span = found.ok_or(RenameError::Nothing)?.span;
    let text = project.text(path).unwrap_or_default();
    let inner = span.of(&text).find(&name).unwrap_or_default();
    let start = span.start as usize + inner;
    Ok((Span::new(start, start + name.len()), name))
}

/// Renames the entity at `offset` everywhere in the project.
///
/// # Errors
/// If the new name is invalid or in use, or if references may be missed.
pub fn rename(project: &Project, path: &Path, offset: usize, new: &str) -> Result<Rename, RenameError> {
    let (_, old) = rename_target(project, path, offset)?;
    let entity = entity_at(project, path, offset).ok_or(RenameError::Nothing)?;
    if old == new {
        return Ok(Rename::default());
    }
    check_name(project, &entity, new)?;
    check_files(project, &old)?;
    let definitions = definitions_of(project, &entity);
    if definitions.is_empty() {
        return Err(RenameError::Nothing);
    }
    let mut edits: BTreeMap<PathBuf, Vec<Edit>> = BTreeMap::new();
    for FileSpan { path, span } in definitions.into_iter().chain(references_of(project, &entity)) {
        let text = project.text(&path).unwrap_or_default();
        let written = span.of(&text);
        let replacement = if written == quoted(&old) {
            quoted(new)
        } else if written == format!(":{old}") {
            format!(":{new}")
        } else if written == old && Language::of(&path) == Some(Language::Script) {
            new.to_owned()
        } else {
            return Err(RenameError::Computed { at: describe(project, &path, span) });
        };
        edits.entry(path).or_default().push(Edit { span, replacement });
    }
    for edits in edits.values_mut() {
        edits.sort_by_key(|edit| edit.span);
        edits.dedup();
    }
    let moves = match &entity {
        Entity::Tool(_) => moved_scripts(project, &old, new),
        Entity::Argument { tool, .. } => {
            for loaded in project.tools_called(tool) {
                check_script_names(project, loaded, &old, new)?;
            }
            Vec::new()
        }
        Entity::Worker(_) => Vec::new(),
    };
    for (path, edits) in edits.iter().filter(|(path, _)| Language::of(path) == Some(Language::Script)) {
        let text = project.text(path).unwrap_or_default();
        let fix = Fix { title: String::new(), edits: edits.clone(), is_safe: true };
        if !is_same_code(&text, &apply_fixes(&text, [&fix]).text) {
            return Err(RenameError::Meaning { file: shown(project, path) });
        }
    }
    if let Some((_, taken)) = moves.iter().find(|(_, to)| to.exists()) {
        return Err(RenameError::Exists { name: new.to_owned(), at: shown(project, taken) });
    }
    Ok(Rename { edits, moves })
}

fn name_of(entity: &Entity) -> &str {
    match entity {
        Entity::Tool(name) | Entity::Worker(name) | Entity::Argument { name, .. } => name,
    }
}

fn check_name(project: &Project, entity: &Entity, new: &str) -> Result<(), RenameError> {
    let invalid = |why| Err(RenameError::Invalid { name: new.to_owned(), why });
    let is_parameter = match entity {
        Entity::Argument { tool, .. } => {
            project.tools_called(tool).any(|loaded| loaded.tool.kind == ToolKind::Normal)
        }
        Entity::Tool(_) | Entity::Worker(_) => false,
    };
    if !is_tool_name(new) {
        return invalid("expected 1 to 64 characters of `A-Z a-z 0-9 _ -`");
    }
    let is_word = new.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && new.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_parameter && (!is_word || KEYWORDS.contains(&new)) {
        return invalid("it is also a parameter of the script, so it must be a valid Luau identifier");
    }
    let taken = match entity {
        Entity::Argument { tool, .. } => Entity::Argument { tool: tool.clone(), name: new.to_owned() },
        Entity::Tool(_) => Entity::Tool(new.to_owned()),
        Entity::Worker(_) => Entity::Worker(new.to_owned()),
    };
    match definitions_of(project, &taken).first() {
        Some(found) => {
            let at = describe(project, &found.path, found.span);
            Err(RenameError::Exists { name: new.to_owned(), at })
        }
        None => Ok(()),
    }
}

/// The keywords of Luau.
const KEYWORDS: [&str; 21] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil",
    "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// Reports the first syntax error of the project: a form with such an error may contain unknown references.
fn check_files(project: &Project, name: &str) -> Result<(), RenameError> {
    let is_broken =
        |finding: &&Diagnostic| finding.severity == Severity::Error && finding.rule.group() == Group::Reading;
    match project.load().findings.iter().find(is_broken) {
        None => Ok(()),
        Some(error) => Err(RenameError::Broken {
            name: name.to_owned(),
            at: project.load().sources.describe(error.primary),
            message: error.message.clone(),
        }),
    }
}

/// Checks that the parameter `old` of a script can be called `new`: the script compiles and has no variable `new`.
fn check_script_names(
    project: &Project,
    loaded: &LoadedTool,
    old: &str,
    new: &str,
) -> Result<(), RenameError> {
    let Some(path) = project.script_of(loaded) else { return Ok(()) };
    if let ScriptState::Broken(error) = &loaded.script {
        let (name, message) = (old.to_owned(), error.message.clone());
        return Err(RenameError::Broken { name, at: shown(project, &path), message });
    }
    if !parameters(loaded).iter().any(|name| name == old) {
        return Ok(());
    }
    let text = project.text(&path).unwrap_or_default();
    match words(&text).into_iter().find(|word| !word.is_field && word.text == new) {
        Some(word) => {
            let span = Span::new(word.start, word.start + new.len());
            Err(RenameError::Exists { name: new.to_owned(), at: describe(project, &path, span) })
        }
        None => Ok(()),
    }
}

/// Returns the scripts that are named after the tool, with their new paths.
fn moved_scripts(project: &Project, old: &str, new: &str) -> Vec<(PathBuf, PathBuf)> {
    let own = project.tools_called(old).filter(|loaded| loaded.tool.script.is_none());
    let scripts = own.filter_map(|loaded| project.script_of(loaded));
    let with_test = scripts.flat_map(|script| {
        let test = script.with_file_name(format!("{old}_test.lua"));
        [Some(script), test.exists().then_some(test)].into_iter().flatten()
    });
    let moved = |from: PathBuf| {
        let name = from.file_name()?.to_str()?.replacen(old, new, 1);
        let to = from.with_file_name(name);
        Some((from, to))
    };
    with_test.filter_map(moved).collect()
}

fn shown(project: &Project, path: &Path) -> String {
    deftool_project::display_name(path, project.root())
}

fn describe(project: &Project, path: &Path, span: Span) -> String {
    let text = project.text(path).unwrap_or_default();
    let file = deftool_lang::text::SourceFile::new(shown(project, path), text);
    let at = file.line_column(span.start);
    format!("{}:{}:{}", file.name, at.line, at.column)
}
