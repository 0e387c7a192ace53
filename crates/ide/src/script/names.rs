//! References, renames and symbols of scripts, from the answers of an analyzer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deftool_lang::diagnostic::{Edit, Fix, apply_fixes};
use deftool_lang::text::Span;
use deftool_script::{
    NameToken, NameUses, OutlineItem, OutlineKind, ScriptUnit, TokenMeaning, is_same_code, is_variable_name,
    words,
};

use super::unit::{ScriptTypes, script_unit};
use crate::project::{FileSpan, Project};
use crate::rename::{Rename, RenameError};
use crate::symbols::{Symbol, SymbolKind};
use crate::tokens::{Token, TokenKind};

/// Maximum number of scripts in which a field of a module is searched.
const MAX_SCRIPTS: usize = 500;

/// The uses of a name in a project.
pub struct ProjectUses {
    /// The uses in the unit of the request.
    pub uses: NameUses,
    /// The uses in other files, by their names.
    pub others: Vec<(String, Vec<(usize, usize)>)>,
}

impl ProjectUses {
    /// Returns all uses, with the definition.
    pub fn places(&self, project: &Project, unit: &ScriptUnit) -> Vec<FileSpan> {
        let here = std::iter::once((&unit.file, &self.uses.uses));
        let others = self.others.iter().map(|(file, spans)| (file, spans));
        let mut found: Vec<FileSpan> = here
            .chain(others)
            .flat_map(|(file, spans)| {
                let path = project.root().join(file);
                spans
                    .iter()
                    .map(move |(start, end)| FileSpan { path: path.clone(), span: Span::new(*start, *end) })
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the place of the definition.
    pub fn definition(&self, project: &Project) -> FileSpan {
        let (start, end) = self.uses.definition.span;
        FileSpan { path: project.root().join(&self.uses.definition.file), span: Span::new(start, end) }
    }

    /// Returns whether it can be renamed: a local, or a field of a shared module. Other fields may be data, such as the
    /// result of a tool.
    pub fn is_renamable(&self) -> bool {
        !self.uses.is_member || self.uses.definition.file.starts_with("scripts/lib/")
    }

    /// Renames all uses.
    ///
    /// # Errors
    /// If the new name is invalid or in use, or if the name cannot be renamed.
    pub fn rename(&self, project: &Project, unit: &ScriptUnit, new: &str) -> Result<Rename, RenameError> {
        if !self.is_renamable() {
            return Err(RenameError::Nothing);
        }
        if !is_variable_name(new) {
            let why = "expected a name of letters, digits and `_`, which is not a keyword";
            return Err(RenameError::Invalid { name: new.to_owned(), why });
        }
        let mut edits: BTreeMap<PathBuf, Vec<Edit>> = BTreeMap::new();
        for place in self.places(project, unit) {
            let edit = Edit { span: place.span, replacement: new.to_owned() };
            edits.entry(place.path).or_default().push(edit);
        }
        if self.uses.is_member {
            self.check_member(unit, new)?;
        } else {
            let edits = edits.values().flatten().cloned().collect();
            let fix = Fix { title: String::new(), edits, is_safe: true };
            let renamed = apply_fixes(&unit.text, [&fix]).text;
            if !is_same_code(&unit.text, &renamed) {
                return Err(RenameError::Meaning { file: unit.file.clone() });
            }
        }
        Ok(Rename { edits, ..Rename::default() })
    }

    /// Fails if the module may have a field of the new name.
    fn check_member(&self, unit: &ScriptUnit, new: &str) -> Result<(), RenameError> {
        let file = &self.uses.definition.file;
        let text = unit.text_of(file).ok_or(RenameError::Nothing)?;
        let Some(word) = words(text).into_iter().find(|word| word.text == new) else { return Ok(()) };
        let line = text.get(..word.start).unwrap_or_default().matches('\n').count() + 1;
        Err(RenameError::Exists { name: new.to_owned(), at: format!("{file}:{line}") })
    }
}

/// Returns the units of the scripts, modules and test scripts of a project, without the file at `path`.
pub fn other_units(project: &Project, types: &ScriptTypes, path: &Path) -> Vec<ScriptUnit> {
    let folders = ["scripts", "specs"].map(|folder| project.root().join(folder));
    let files = project.find_files(&["lua", "luau"]).paths.into_iter();
    let files = files.filter(|file| file != path && folders.iter().any(|folder| file.starts_with(folder)));
    files.take(MAX_SCRIPTS).filter_map(|file| script_unit(project, types, &file)).collect()
}

/// Returns the symbols of a script, nested by their spans. `items`: outer ones first.
pub fn script_symbols(items: Vec<OutlineItem>) -> Vec<Symbol> {
    let mut roots: Vec<Symbol> = Vec::new();
    for item in items {
        let kind = match item.kind {
            OutlineKind::Function => SymbolKind::Function,
            OutlineKind::Variable => SymbolKind::Variable,
            OutlineKind::Test => SymbolKind::Test,
        };
        let span = |(start, end): (usize, usize)| Span::new(start, end);
        let symbol = Symbol {
            name: item.name,
            kind,
            span: span(item.span),
            name_span: span(item.name_span),
            children: Vec::new(),
        };
        nest(&mut roots, symbol);
    }
    roots
}

/// Adds a symbol after its siblings, or in the last one that contains it.
fn nest(siblings: &mut Vec<Symbol>, symbol: Symbol) {
    match siblings.last_mut() {
        Some(outer) if symbol.span.end <= outer.span.end => nest(&mut outer.children, symbol),
        _ => siblings.push(symbol),
    }
}

/// Returns the tokens of a script.
pub fn script_tokens(found: &[NameToken]) -> Vec<Token> {
    let token = |token: &NameToken| Token {
        span: Span::new(token.span.0, token.span.1),
        kind: match token.meaning {
            TokenMeaning::Parameter => TokenKind::Argument,
            TokenMeaning::Variable => TokenKind::Variable,
            TokenMeaning::Function => TokenKind::Tool,
            TokenMeaning::Field => TokenKind::Key,
        },
    };
    found.iter().map(token).collect()
}
