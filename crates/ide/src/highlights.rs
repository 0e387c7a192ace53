//! The occurrences of a name in one file.

use std::path::Path;

use deftool_lang::text::Span;
use deftool_project::is_test_script;

use crate::entity::{definitions_of, entity_at, references_of};
use crate::project::{FileSpan, Project};
use crate::usages::usages_in;

/// An occurrence of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Highlight {
    /// The occurrence.
    pub span: Span,
    /// Whether it is the definition.
    pub is_definition: bool,
}

/// Returns the occurrences of the tool, argument or worker at `offset` in the same file, in order.
pub fn highlights(project: &Project, path: &Path, offset: usize) -> Vec<Highlight> {
    let Some(entity) = entity_at(project, path, offset) else { return Vec::new() };
    let here = |found: Vec<FileSpan>, is_definition| {
        let found = found.into_iter().filter(|found| found.path == path);
        found.map(move |found| Highlight { span: found.span, is_definition }).collect::<Vec<_>>()
    };
    let mut found = here(definitions_of(project, &entity), true);
    found.extend(here(references_of(project, &entity), false));
    if is_test_script(path) {
        let uses = usages_in(project, path, &entity).found.into_iter();
        found.extend(uses.map(|span| Highlight { span, is_definition: false }));
    }
    found.sort_unstable();
    found.dedup_by_key(|highlight| highlight.span);
    found
}
