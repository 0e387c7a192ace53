//! Semantic tokens.

use std::path::Path;

use deftool_lang::spec::reference::{KeyValue, Plist};
use deftool_lang::syntax::Kind;
use deftool_lang::text::Span;

use crate::outline::{Outline, Role};
use crate::project::Project;

/// A token with a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// The span.
    pub span: Span,
    /// The meaning.
    pub kind: TokenKind,
}

/// The meaning of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// The head of a form.
    Head,
    /// A known key.
    Key,
    /// The name of a tool.
    Tool,
    /// The name of an argument.
    Argument,
    /// A type.
    Type,
    /// A symbol with a fixed meaning.
    Word,
    /// A variable of a script.
    Variable,
    /// A string.
    String,
    /// A number.
    Number,
    /// A comment.
    Comment,
}

/// Returns the tokens of a spec file in source order. In Emacs Lisp, only tool forms have tokens.
pub fn tokens(project: &Project, path: &Path) -> Vec<Token> {
    let Some(outline) = Outline::of(project, path) else { return Vec::new() };
    let mut found = Vec::new();
    for part in &outline.parts {
        let node = part.node;
        let kind = match (part.role, outline.tree.kind(node)) {
            (_, Kind::List | Kind::Vector) => None,
            // The prompt of an ask is a string.
            (Role::Head, Kind::String) => Some(TokenKind::String),
            (Role::Head | Role::PatternHead, _) => Some(TokenKind::Head),
            (Role::Tool, _) => Some(TokenKind::Tool),
            (Role::Key(_, Some(_)), _) => Some(TokenKind::Key),
            (Role::CallKey | Role::Name, Kind::Keyword) => Some(TokenKind::Argument),
            (Role::Value(plist, key), kind) => match (plist, key.value) {
                (Plist::Tool | Plist::Exit, KeyValue::Text) if key.name == "name" => Some(TokenKind::Tool),
                (_, KeyValue::Tools(_)) => Some(TokenKind::Tool),
                (Plist::Argument, KeyValue::Text) if key.name == "name" => Some(TokenKind::Argument),
                (_, KeyValue::Arguments) => Some(TokenKind::Argument),
                (_, KeyValue::Type) => Some(TokenKind::Type),
                (
                    _,
                    KeyValue::Words(_)
                    | KeyValue::WordList(_)
                    | KeyValue::Dialect
                    | KeyValue::Flag
                    | KeyValue::JsonFlag
                    | KeyValue::Rules
                    | KeyValue::Previews
                    | KeyValue::Confirm,
                ) => Some(TokenKind::Word),
                _ => of_atom(kind),
            },
            (Role::CallValue(_) | Role::Pattern(_), kind) => of_atom(kind),
            _ => None,
        };
        found.extend(kind.map(|kind| Token { span: outline.span(node), kind }));
    }
    let is_of_form = |comment: &&Span| {
        let next = outline.forms.partition_point(|form| outline.span(form.node).start < comment.start);
        let form = next.checked_sub(1).and_then(|index| outline.forms.get(index));
        outline.kind == deftool_lang::spec::FileKind::Specs
            || form.is_some_and(|form| comment.end <= outline.span(form.node).end)
    };
    let comments = outline.tree.comments().iter().filter(is_of_form);
    found.extend(comments.map(|span| Token { span: *span, kind: TokenKind::Comment }));
    found.sort_unstable_by_key(|token| token.span);
    // A quoted value is a part together with its prefix.
    found.dedup_by(|next, token| next.span.start < token.span.end);
    found
}

fn of_atom(kind: Kind) -> Option<TokenKind> {
    match kind {
        Kind::String => Some(TokenKind::String),
        Kind::Integer | Kind::Float | Kind::Character => Some(TokenKind::Number),
        Kind::Symbol | Kind::Keyword => Some(TokenKind::Word),
        _ => None,
    }
}
