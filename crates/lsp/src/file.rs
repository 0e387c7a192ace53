//! A file that a request refers to, with its project.

use std::path::PathBuf;
use std::sync::Arc;

use deftool_ide::{self as ide, FileSpan, LensKind, Project};
use deftool_lang::diagnostic::Edit;
use deftool_lang::text::Span;
use gen_lsp_types as lsp;
use serde_json::json;

use crate::convert;
use crate::locations::Locations;
use crate::position::Lines;
use crate::settings::Settings;

/// A file in its current state.
pub(crate) struct File<'s> {
    pub(crate) settings: &'s Settings,
    pub(crate) project: &'s Project,
    pub(crate) path: PathBuf,
    pub(crate) text: Arc<str>,
}

impl File<'_> {
    pub(crate) fn lines(&self) -> Lines {
        Lines::of(&self.text, self.settings.encoding)
    }

    pub(crate) fn offset(&self, position: lsp::Position) -> usize {
        self.settings.encoding.offset(&self.text, position)
    }

    fn span(&self, range: lsp::Range) -> Span {
        let start = self.offset(range.start);
        Span::new(start, self.offset(range.end).max(start))
    }

    pub(crate) fn locations(&self, found: &[FileSpan]) -> Vec<lsp::Location> {
        let mut locations = Locations::new(self.project, self.settings.encoding);
        found.iter().filter_map(|found| locations.of(found)).collect()
    }

    pub(crate) fn completions(&self, position: lsp::Position) -> lsp::CompletionList {
        let found = ide::completions(self.project, &self.path, self.offset(position));
        let lines = self.lines();
        let items = found.items.into_iter();
        lsp::CompletionList {
            is_incomplete: found.is_incomplete,
            items: items.map(|item| convert::completion(item, &lines, self.settings.with_snippets)).collect(),
            item_defaults: None,
            apply_kind: None,
        }
    }

    pub(crate) fn signature(&self, position: lsp::Position) -> Option<lsp::SignatureHelp> {
        let found = ide::signature(self.project, &self.path, self.offset(position))?;
        Some(convert::signature(&found))
    }

    pub(crate) fn highlights(&self, position: lsp::Position) -> Vec<lsp::DocumentHighlight> {
        let (lines, found) = (self.lines(), ide::highlights(self.project, &self.path, self.offset(position)));
        let highlight = |found: &ide::Highlight| lsp::DocumentHighlight {
            range: lines.range(found.span),
            kind: Some(if found.is_definition {
                lsp::DocumentHighlightKind::Write
            } else {
                lsp::DocumentHighlightKind::Read
            }),
        };
        found.iter().map(highlight).collect()
    }

    pub(crate) fn hover(&self, position: lsp::Position) -> Option<lsp::Hover> {
        let hover = ide::hover(self.project, &self.path, self.offset(position), self.settings.target)?;
        let contents = lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value: hover.markdown };
        Some(lsp::Hover { contents: contents.into(), range: Some(self.lines().range(hover.span)) })
    }

    pub(crate) fn symbols(&self) -> Vec<lsp::DocumentSymbol> {
        let (symbols, lines) = (ide::symbols(self.project, &self.path), self.lines());
        symbols.iter().map(|symbol| convert::symbol(symbol, &lines)).collect()
    }

    pub(crate) fn tokens(&self) -> lsp::SemanticTokens {
        convert::tokens(&ide::tokens(self.project, &self.path), &self.text, &self.lines())
    }

    /// Returns one selection for each position, as the protocol requires.
    pub(crate) fn selections(&self, positions: &[lsp::Position]) -> Vec<lsp::SelectionRange> {
        let lines = self.lines();
        let selection = |position: &lsp::Position| {
            let spans = ide::selections(self.project, &self.path, self.offset(*position));
            let here = lsp::Range { start: *position, end: *position };
            convert::selection(&spans, &lines).unwrap_or(lsp::SelectionRange { range: here, parent: None })
        };
        positions.iter().map(selection).collect()
    }

    pub(crate) fn format(&self, range: Option<lsp::Range>) -> Vec<lsp::TextEdit> {
        let edits: Vec<Edit> = ide::format(self.project, &self.path, range.map(|range| self.span(range)));
        convert::text_edits(&edits, &self.lines())
    }

    pub(crate) fn actions(&self, of: &lsp::CodeActionParams) -> Vec<lsp::CodeAction> {
        let is_wanted = |kind: &lsp::CodeActionKind| {
            let contains = |wanted: &lsp::CodeActionKind| {
                let (wanted, kind) = (json!(wanted), json!(kind));
                let (wanted, kind) = (wanted.as_str().unwrap_or_default(), kind.as_str().unwrap_or_default());
                kind.strip_prefix(wanted)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || wanted.is_empty())
            };
            of.context.only.as_ref().is_none_or(|only| only.iter().any(contains))
        };
        let lines = self.lines();
        let mut locations = Locations::new(self.project, self.settings.encoding);
        let mut actions = Vec::new();
        if is_wanted(&lsp::CodeActionKind::QuickFix) {
            let found = ide::actions(self.project, &self.path, self.span(of.range));
            let convert = |action| convert::action(self.project, &self.path, action, &lines, &mut locations);
            actions.extend(found.iter().map(convert));
            let of_rules = ide::fixes_of_rules(self.project, &self.path, self.span(of.range));
            actions.extend(of_rules.iter().map(|fixes| convert::rule_fixes(&self.path, fixes, &lines)));
        }
        if is_wanted(&lsp::CodeActionKind::SourceFixAll)
            && let Some(fixed) = ide::fix_all(self.project, &self.path)
        {
            actions.push(convert::fix_all(&self.path, fixed, &self.text, &lines));
        }
        actions
    }

    pub(crate) fn folds(&self) -> Vec<lsp::FoldingRange> {
        let lines = self.lines();
        let fold = |span: &Span| {
            let lsp::Range { start, end } = lines.range(*span);
            let is_comment = span.of(&self.text).starts_with(';');
            lsp::FoldingRange {
                start_line: start.line,
                start_character: Some(start.character),
                end_line: end.line,
                end_character: Some(end.character),
                kind: is_comment.then_some(lsp::FoldingRangeKind::Comment),
                collapsed_text: None,
            }
        };
        ide::folds(self.project, &self.path).iter().map(fold).collect()
    }

    pub(crate) fn hints(&self, range: lsp::Range) -> Vec<lsp::InlayHint> {
        let (lines, span) = (self.lines(), self.span(range));
        let hints = ide::hints(self.project, &self.path).into_iter();
        let is_shown =
            |hint: &ide::Hint| span.start as usize <= hint.offset && hint.offset <= span.end as usize;
        let hint = |hint: ide::Hint| {
            let is_type = hint.label.starts_with(':');
            lsp::InlayHint {
                position: lines.position(hint.offset),
                label: lsp::Label::String(hint.label),
                kind: is_type.then_some(lsp::InlayHintKind::Type),
                padding_left: Some(!is_type),
                text_edits: None,
                tooltip: None,
                padding_right: None,
                data: None,
            }
        };
        hints.filter(is_shown).map(hint).collect()
    }

    pub(crate) fn lenses(&self) -> Vec<lsp::CodeLens> {
        let lines = self.lines();
        let lens = |lens: ide::Lens| {
            let (title, command) = match lens.kind {
                LensKind::Call => ("call", "deftool.call"),
                LensKind::Test => ("test", "deftool.test"),
                LensKind::Compile => ("compile", "deftool.compile"),
            };
            let arguments = vec![json!({"root": self.project.root(), "tool": lens.tool})];
            let command = lsp::Command {
                title: title.to_owned(),
                command: command.to_owned(),
                arguments: Some(arguments),
                tooltip: None,
            };
            lsp::CodeLens { range: lines.range(lens.span), command: Some(command), data: None }
        };
        ide::lenses(self.project, &self.path).into_iter().map(lens).collect()
    }
}
