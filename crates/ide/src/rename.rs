//! Rename of tools, arguments and workers in specs, scripts, workers, test scripts and scenarios.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deftool_lang::diagnostic::{Diagnostic, Edit, Fix, Group, Severity, apply_fixes};
use deftool_lang::spec::reference::KeyValue;
use deftool_lang::spec::{FileKind, Origin, ToolKind, is_tool_name};
use deftool_lang::syntax::quoted;
use deftool_lang::text::{Location, Span};
use deftool_project::{LoadedTool, ScriptState};
use deftool_script::{is_same_code, is_variable_name, words};

use crate::entity::{definitions_of, entity_at, entity_of, parameters, references_of};
use crate::model::{Entity, symbol_or_string};
use crate::outline::{Outline, Part, Role};
use crate::project::{FileSpan, Language, Project};
use crate::usages::{Unedited, Usages, cut_off, recorded, usage_files, usages_in};

/// The changes of a rename.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rename {
    /// The edits of each file, in source order.
    pub edits: BTreeMap<PathBuf, Vec<Edit>>,
    /// Files to move, after the edits: the old and the new path.
    pub moves: Vec<(PathBuf, PathBuf)>,
    /// What is not edited although it contains the old name, or may contain it.
    pub unedited: Vec<Unedited>,
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
    /// A script must move with its tool, the editor cannot move it, and its form cannot name it.
    #[error("this editor cannot move files; rename {from} to {to} and the tool by hand")]
    Unmovable {
        /// The script.
        from: String,
        /// Its new path.
        to: String,
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
    let here = usages_in(project, path, &entity).found.into_iter();
    let here = here.map(|span| FileSpan { path: path.to_owned(), span });
    let known = definitions_of(project, &entity).into_iter().chain(references_of(project, &entity));
    let found = known.chain(here).find(at);
    let span = found.ok_or(RenameError::Nothing)?.span;
    let text = project.text(path).unwrap_or_default();
    let inner = span.of(&text).find(&name).unwrap_or_default();
    let start = span.start as usize + inner;
    Ok((Span::new(start, start + name.len()), name))
}

/// Renames the entity at `offset` everywhere in the project. `moves_files`: whether the editor can move files; if not,
/// the spec of a renamed tool names its script.
///
/// # Errors
/// If the new name is invalid or in use, or if references may be missed.
pub fn rename(
    project: &Project,
    path: &Path,
    offset: usize,
    new: &str,
    moves_files: bool,
) -> Result<Rename, RenameError> {
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
    let mut renamed = Rename::default();
    for found in definitions.into_iter().chain(references_of(project, &entity)) {
        renamed.replace(project, found, &old, new)?;
    }
    match &entity {
        Entity::Tool(_) if moves_files => renamed.moves = moved_scripts(project, &old, new),
        Entity::Tool(_) => renamed.name_scripts(project, &old, new)?,
        Entity::Argument { tool, .. } => {
            for loaded in project.tools_called(tool) {
                check_script_names(project, loaded, &old, new)?;
            }
        }
        Entity::Worker(_) => {}
    }
    renamed.check_calls(project, &entity)?;
    renamed.check_meaning(project)?;
    if let Some((_, taken)) = renamed.moves.iter().find(|(_, to)| project.exists(to)) {
        return Err(RenameError::Exists { name: new.to_owned(), at: shown(project, taken) });
    }
    renamed.replace_usages(project, &entity, new)?;
    for edits in renamed.edits.values_mut() {
        edits.sort_by_key(|edit| edit.span);
        edits.dedup();
    }
    Ok(renamed)
}

impl Rename {
    /// Adds the replacement of a name.
    fn replace(
        &mut self,
        project: &Project,
        FileSpan { path, span }: FileSpan,
        old: &str,
        new: &str,
    ) -> Result<(), RenameError> {
        let text = project.text(&path).unwrap_or_default();
        let written = span.of(&text);
        let replacement = if written == quoted(old) {
            quoted(new)
        } else if written == format!(":{old}") {
            format!(":{new}")
        } else if written == old && Language::of(&path) == Some(Language::Script) {
            new.to_owned()
        } else if written == old && !FileKind::of_name(&path.to_string_lossy()).is_code() {
            // A symbol in an ask. In Emacs Lisp, it could be a variable.
            symbol_or_string(new)
        } else if let Some(end @ ("}" | "?}")) = written.strip_prefix(&format!("{{{old}")) {
            format!("{{{new}{end}")
        } else {
            return Err(RenameError::Computed { at: describe(project, &path, span) });
        };
        self.edits.entry(path).or_default().push(Edit { span, replacement });
        Ok(())
    }

    /// Adds the names in test scripts and scenarios, and what is not edited.
    fn replace_usages(&mut self, project: &Project, entity: &Entity, new: &str) -> Result<(), RenameError> {
        let old = name_of(entity);
        let (files, is_cut_off) = usage_files(project);
        for path in files {
            let Usages { found, uncertain, error } = usages_in(project, &path, entity);
            if let Some((span, message)) = error {
                let (name, at) = (old.to_owned(), describe(project, &path, span));
                return Err(RenameError::Broken { name, at, message });
            }
            if let Entity::Argument { tool, .. } = entity {
                let taken = Entity::Argument { tool: tool.clone(), name: new.to_owned() };
                if let Some(span) = usages_in(project, &path, &taken).found.first() {
                    let at = describe(project, &path, *span);
                    return Err(RenameError::Exists { name: new.to_owned(), at });
                }
            }
            let unedited = uncertain.into_iter();
            self.unedited
                .extend(unedited.map(|(span, why)| Unedited { at: describe(project, &path, span), why }));
            for span in found {
                self.replace(project, FileSpan { path: path.clone(), span }, old, new)?;
            }
        }
        self.unedited.extend(recorded(project, entity));
        self.unedited.extend(is_cut_off.then(cut_off));
        Ok(())
    }

    /// Adds `:script` to the tools called `old`, because their scripts keep their names.
    fn name_scripts(&mut self, project: &Project, old: &str, new: &str) -> Result<(), RenameError> {
        for loaded in project.tools_called(old).filter(|loaded| loaded.tool.script.is_none()) {
            let Some(script) = project.script_of(loaded) else { continue };
            let name = Location { source: loaded.tool.source, span: loaded.tool.name.span };
            let Some(FileSpan { path, span }) = project.at(name) else { continue };
            if loaded.tool.origin != Origin::Spec {
                let to = shown(project, &moved(&script, old, new));
                return Err(RenameError::Unmovable { from: shown(project, &script), to });
            }
            let text = project.text(&path).unwrap_or_default();
            let rest = text.get(span.end as usize..).unwrap_or_default();
            let blank = rest.len() - rest.trim_start().len();
            // The layout of the next key, which may be on its own line.
            let separator = rest.get(..blank).filter(|_| blank > 0 && rest.trim_start().starts_with(':'));
            let separator = separator.unwrap_or(" ");
            let replacement = format!("{separator}:script {}", quoted(&shown(project, &script)));
            let at = Span::at(span.end as usize);
            self.edits.entry(path).or_default().push(Edit { span: at, replacement });
        }
        Ok(())
    }

    /// Checks that all calls of asks and examples which name the entity are edited. Those with errors are not loaded.
    fn check_calls(&self, project: &Project, entity: &Entity) -> Result<(), RenameError> {
        let old = name_of(entity);
        let sources = project.load().sources.iter().filter(|(_, file)| file.text.contains(old));
        let paths = sources.map(|(_, file)| project.root().join(&file.name));
        for path in paths.filter(|path| Language::of(path) == Some(Language::Spec)) {
            let Some(outline) = Outline::of(project, &path) else { continue };
            let edits = self.edits.get(&path).map_or(&[][..], Vec::as_slice);
            let names = |part: &&Part| {
                let is_in_call = match part.role {
                    Role::Tool | Role::CallKey => true,
                    Role::Value(_, key) => matches!(key.value, KeyValue::Arguments),
                    _ => false,
                };
                is_in_call && entity_of(&outline, part).as_ref() == Some(entity)
            };
            let mut named = outline.parts.iter().filter(names).map(|part| outline.span(part.node));
            if let Some(span) = named.find(|span| edits.iter().all(|edit| edit.span != *span)) {
                let (name, at) = (old.to_owned(), describe(project, &path, span));
                let message = String::from("the call with this name is not loaded");
                return Err(RenameError::Broken { name, at, message });
            }
        }
        Ok(())
    }

    /// Checks that the edited scripts do the same.
    fn check_meaning(&self, project: &Project) -> Result<(), RenameError> {
        for (path, edits) in
            self.edits.iter().filter(|(path, _)| Language::of(path) == Some(Language::Script))
        {
            let text = project.text(path).unwrap_or_default();
            let mut edits = edits.clone();
            edits.sort_by_key(|edit| edit.span);
            let fix = Fix { title: String::new(), edits, is_safe: true };
            if !is_same_code(&text, &apply_fixes(&text, [&fix]).text) {
                return Err(RenameError::Meaning { file: shown(project, path) });
            }
        }
        Ok(())
    }
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
    if is_parameter && !is_variable_name(new) {
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
        [Some(script), project.exists(&test).then_some(test)].into_iter().flatten()
    });
    let with_new = |from: PathBuf| {
        let to = moved(&from, old, new);
        (from, to)
    };
    with_test.map(with_new).collect()
}

/// Returns the path of a file that is named after a tool, after the rename of the tool.
fn moved(from: &Path, old: &str, new: &str) -> PathBuf {
    let name = from.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    from.with_file_name(name.replacen(old, new, 1))
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
