//! Support for `pattern` in the llama.cpp server, which translates the pattern to its grammar piece by piece.
//!
//! If the server does not support a piece, it allows any string. An invalid pattern is an error. The translation does
//! not account for JSON: a piece that matches an unescaped quote, backslash or control character lets the model
//! generate invalid JSON. Recorded from a real server, like everything for this target: `tests/llama_cpp.json`.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{
    Ast, ClassBracketed, ClassSet, ClassSetItem, ErrorKind, GroupKind, HexLiteralKind, Literal, LiteralKind,
    Repetition, RepetitionKind, RepetitionRange,
};

/// The server's handling of a pattern. If its pieces differ, the last one applies: a piece that is not supported makes
/// the server allow any string, before it reads the grammar of the other pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PatternSupport {
    /// Enforced as written.
    Enforced,
    /// Interpreted differently.
    Misread,
    /// The server returns an error.
    Refused,
    /// Any string is allowed.
    Ignored,
}

use PatternSupport::{Enforced, Ignored, Misread, Refused};

/// Maximum for the lower bound of a repetition.
const MAX_REPETITION: u32 = 2000;

/// Classifies a pattern.
pub(super) fn classify(pattern: &str) -> PatternSupport {
    let Some(inner) = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')) else {
        return Ignored;
    };
    match Parser::new().parse(inner) {
        Ok(ast) => of(&ast),
        Err(error) => match error.kind() {
            ErrorKind::ClassUnclosed
            | ErrorKind::GroupUnclosed
            | ErrorKind::GroupUnopened
            | ErrorKind::RepetitionCountInvalid => Refused,
            ErrorKind::EscapeUnexpectedEof if error.span().start.offset + 1 == inner.len() => Refused,
            ErrorKind::RepetitionMissing if !is_brace(inner, error.span().start.offset) => Refused,
            // The server allows no character.
            ErrorKind::ClassRangeInvalid => Misread,
            _ => Ignored,
        },
    }
}

fn is_brace(pattern: &str, offset: usize) -> bool {
    pattern.get(offset..).is_some_and(|rest| rest.starts_with('{'))
}

fn of(ast: &Ast) -> PatternSupport {
    match ast {
        Ast::Empty(_) => Enforced,
        Ast::Literal(literal) => of_literal(literal, "nrt\"\\-$()*+.?[]^{|}"),
        Ast::Dot(_) => Misread,
        Ast::ClassBracketed(class) => of_class(class),
        Ast::Repetition(repetition) => of_repetition(repetition),
        Ast::Group(group) => match &group.kind {
            GroupKind::CaptureIndex(_) => of(&group.ast),
            GroupKind::NonCapturing(flags) if flags.items.is_empty() => of(&group.ast),
            GroupKind::NonCapturing(_) | GroupKind::CaptureName { .. } => Ignored,
        },
        Ast::Alternation(alternation) => last(alternation.asts.iter().map(of)),
        Ast::Concat(concat) => last(concat.asts.iter().map(of)),
        Ast::Flags(_) | Ast::Assertion(_) | Ast::ClassPerl(_) | Ast::ClassUnicode(_) => Ignored,
    }
}

fn last(supports: impl Iterator<Item = PatternSupport>) -> PatternSupport {
    supports.max().unwrap_or(Enforced)
}

/// Returns the support for a literal. `known` are the characters that the server supports after a backslash.
fn of_literal(literal: &Literal, known: &str) -> PatternSupport {
    let is_supported = match &literal.kind {
        LiteralKind::Verbatim => !matches!(literal.c, ']' | '}'),
        LiteralKind::HexFixed(kind) => *kind != HexLiteralKind::UnicodeLong,
        LiteralKind::Special(_) => matches!(literal.c, '\n' | '\r' | '\t'),
        LiteralKind::Meta | LiteralKind::Superfluous => known.contains(literal.c),
        LiteralKind::Octal | LiteralKind::HexBrace(_) => false,
    };
    if is_supported { of_range(literal.c, literal.c) } else { Ignored }
}

/// Returns whether the range contains characters that JSON strings must escape.
fn of_range(first: char, last: char) -> PatternSupport {
    let holds = |character| (first..=last).contains(&character);
    if first < ' ' || holds('"') || holds('\\') { Misread } else { Enforced }
}

fn of_class(class: &ClassBracketed) -> PatternSupport {
    let negation = if class.negated { Misread } else { Enforced };
    negation.max(of_set(&class.kind))
}

fn of_set(set: &ClassSet) -> PatternSupport {
    match set {
        ClassSet::Item(item) => of_item(item),
        // Two `&` are only characters.
        ClassSet::BinaryOp(operation) => of_set(&operation.lhs).max(of_set(&operation.rhs)),
    }
}

fn of_item(item: &ClassSetItem) -> PatternSupport {
    let known = "nrt\"\\-[]";
    match item {
        ClassSetItem::Empty(_) => Ignored,
        ClassSetItem::Literal(literal) => of_literal(literal, known),
        ClassSetItem::Range(range) => {
            let ends = of_literal(&range.start, known).max(of_literal(&range.end, known));
            ends.max(of_range(range.start.c, range.end.c))
        }
        ClassSetItem::Union(union) => last(union.items.iter().map(of_item)),
        ClassSetItem::Ascii(_)
        | ClassSetItem::Unicode(_)
        | ClassSetItem::Perl(_)
        | ClassSetItem::Bracketed(_) => Ignored,
    }
}

fn of_repetition(repetition: &Repetition) -> PatternSupport {
    let least = match repetition.op.kind {
        RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore => 0,
        RepetitionKind::OneOrMore => 1,
        RepetitionKind::Range(
            RepetitionRange::Exactly(least)
            | RepetitionRange::AtLeast(least)
            | RepetitionRange::Bounded(least, _),
        ) => least,
    };
    let is_unlimited = matches!(repetition.op.kind, RepetitionKind::ZeroOrMore | RepetitionKind::OneOrMore);
    // The server repeats only the last byte of a character.
    let is_wide = matches!(&*repetition.ast, Ast::Literal(literal)
        if literal.kind == LiteralKind::Verbatim && !literal.c.is_ascii());
    let repeated = of(&repetition.ast);
    if is_wide || least > MAX_REPETITION || (is_unlimited && is_optional(&repetition.ast)) {
        return repeated.max(Refused);
    }
    // The server reads `a+?` as an optional `a+`.
    if repetition.greedy { repeated } else { repeated.max(Misread) }
}

/// Returns whether a piece is written so that it also matches nothing. The server cannot repeat it without a limit.
fn is_optional(ast: &Ast) -> bool {
    match ast {
        Ast::Repetition(inner) => {
            !inner.greedy || matches!(inner.op.kind, RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore)
        }
        Ast::Group(group) => matches!(*group.ast, Ast::Empty(_)),
        _ => false,
    }
}
