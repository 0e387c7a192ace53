//! Folding and selection along the syntax tree.

use std::path::Path;

use deftool_lang::spec::FileKind;
use deftool_lang::syntax::{Kind, parse};
use deftool_lang::text::{Sources, Span};

use crate::outline::Outline;
use crate::project::{Language, Project};

/// Returns the spans to fold in a spec file: lists and vectors of tool forms with several lines, and blocks of comments.
pub fn folds(project: &Project, path: &Path) -> Vec<Span> {
    let Some(outline) = Outline::of(project, path).filter(|_| Language::of(path) == Some(Language::Spec))
    else {
        return Vec::new();
    };
    let has_lines = |span: &Span| span.of(&outline.text).contains('\n');
    let parts = outline.parts.iter().map(|part| outline.span(part.node));
    let mut found: Vec<Span> = parts.filter(has_lines).collect();
    let mut block: Option<Span> = None;
    for &comment in outline.tree.comments() {
        let between = block.and_then(|block| outline.text.get(block.end as usize..comment.start as usize));
        let continues =
            between.is_some_and(|between| between.trim().is_empty() && between.matches('\n').count() == 1);
        block = if continues {
            block.map(|block| block.to(comment))
        } else {
            found.extend(block);
            Some(comment)
        };
    }
    found.extend(block);
    found.retain(has_lines);
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the spans around `offset` in a spec file, from the innermost to the outermost.
pub fn selections(project: &Project, path: &Path, offset: usize) -> Vec<Span> {
    let Some(text) = project.text(path).filter(|_| Language::of(path) == Some(Language::Spec)) else {
        return Vec::new();
    };
    let code = FileKind::of_name(&path.to_string_lossy()).code_of(&text);
    let (tree, _) = parse(Sources::new().id_ahead(0), &code);
    let mut found = vec![Span::new(0, text.len())];
    let mut children = tree.roots();
    while let Some(node) = children.find(|node| tree.span(*node).range().contains(&offset)) {
        let span = tree.span(node);
        found.push(span);
        if matches!(tree.kind(node), Kind::List | Kind::Vector | Kind::String) && span.len() > 2 {
            let inner = Span::new(span.start as usize + 1, span.end as usize - 1);
            found.extend(inner.range().contains(&offset).then_some(inner));
        }
        children = tree.children(node);
    }
    found.reverse();
    found.dedup();
    found
}
