//! The tokens of a script, with their spans, and which brackets and blocks belong together.
//!
//! For questions that the bytecode does not answer, because it has no columns. Scripts that do not compile have tokens
//! too, but their blocks may be wrong.

use deftool_lang::text::Span;

use super::module::{Scanner, is_word};

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name, a keyword or a number.
    Word,
    /// A string literal without escapes. The span is that of its content.
    PlainString,
    /// Another string literal, or the text of an interpolated string up to an expression or its end.
    OtherString,
    Symbol,
}

/// A token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'s> {
    pub(super) kind: TokenKind,
    /// The text of the span.
    pub(super) text: &'s str,
    pub(super) span: Span,
}

/// The tokens of a source.
pub(super) struct Tokens<'s> {
    all: Vec<Token<'s>>,
    /// For each bracket and each keyword that opens a block: the index of the token that closes it. For a branch of an
    /// `if`, this is the start of the next one.
    closes: Vec<Option<usize>>,
}

/// Symbols with several characters. Longer ones come before their prefixes.
const SYMBOLS: [&str; 20] = [
    "...", "..=", "//=", "..", "==", "~=", "<=", ">=", "::", "->", "+=", "-=", "*=", "/=", "%=", "^=", "//",
    "<<", ">>", "!=",
];

impl<'s> Tokens<'s> {
    pub(super) fn of(source: &'s str) -> Self {
        let all = tokens(source);
        let closes = closes(&all);
        Self { all, closes }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<Token<'s>> {
        self.all.get(index).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, Token<'s>)> {
        self.all.iter().copied().enumerate()
    }

    /// Returns the text of a word or a symbol, or `""` for a string and after the last token.
    pub(super) fn code(&self, index: usize) -> &'s str {
        self.all.get(index).map_or("", Token::code)
    }

    /// Returns the text of the token before `index`.
    pub(super) fn code_before(&self, index: usize) -> &'s str {
        index.checked_sub(1).map_or("", |before| self.code(before))
    }

    pub(super) fn is_kind(&self, index: usize, kind: TokenKind) -> bool {
        self.all.get(index).is_some_and(|token| token.kind == kind)
    }

    /// Returns whether the token is a name, and not a keyword.
    pub(super) fn is_name(&self, index: usize) -> bool {
        self.is_kind(index, TokenKind::Word)
            && !KEYWORDS.contains(&self.code(index))
            && !self.code(index).starts_with(|first: char| first.is_ascii_digit())
    }

    /// Returns whether the name at `index` is that of a field: `t.name`, `t:name()`.
    pub(super) fn is_member(&self, index: usize) -> bool {
        matches!(self.code_before(index), "." | ":")
    }

    /// Returns the token that closes the bracket or the block at `index`.
    pub(super) fn close(&self, index: usize) -> Option<usize> {
        self.closes.get(index).copied().flatten()
    }

    /// Returns the index after the bracket, the block or the single token at `index`.
    pub(super) fn skip(&self, index: usize) -> usize {
        match self.code(index) {
            "(" | "[" | "{" | "function" => self.close(index).map_or(self.len(), |close| close + 1),
            _ => index + 1,
        }
    }

    /// Returns the end of the list of expressions that starts at `index`.
    pub(super) fn end_of_expressions(&self, mut index: usize) -> usize {
        // The number of `if` expressions whose `else` did not follow yet.
        let mut branches = 0_usize;
        let mut is_complete = false;
        while index < self.len() {
            let code = self.code(index);
            match code {
                "if" if !is_complete => branches += 1,
                "else" if branches > 0 => branches -= 1,
                "then" | "elseif" if branches > 0 => {}
                ")" | "]" | "}" | ";" | "=" => return index,
                _ if is_complete && self.starts_statement(index) => return index,
                _ => {}
            }
            is_complete = match self.get(index) {
                Some(token) if token.kind == TokenKind::Word => {
                    code == "function" || !OPERATORS.contains(&code)
                }
                Some(token) if token.kind == TokenKind::Symbol => matches!(code, "(" | "[" | "{" | "..."),
                Some(_) => true,
                None => false,
            };
            index = self.skip(index);
        }
        index
    }

    /// Returns whether the word at `index` cannot continue a complete expression.
    fn starts_statement(&self, index: usize) -> bool {
        self.is_kind(index, TokenKind::Word)
            && !matches!(self.code(index), "and" | "or")
            && !self.is_member(index)
    }

    /// Splits the tokens from `start` to `end` at commas and semicolons outside of brackets and functions.
    pub(super) fn pieces(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let (mut pieces, mut first, mut index) = (Vec::new(), start, start);
        while index < end {
            if matches!(self.code(index), "," | ";") {
                pieces.push((first, index));
                first = index + 1;
            }
            index = self.skip(index);
        }
        if first < end {
            pieces.push((first, end));
        }
        pieces
    }
}

impl<'s> Token<'s> {
    fn code(&self) -> &'s str {
        match self.kind {
            TokenKind::Word | TokenKind::Symbol => self.text,
            TokenKind::PlainString | TokenKind::OtherString => "",
        }
    }
}

/// The keywords of Luau.
pub(super) const KEYWORDS: [&str; 21] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil",
    "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// The keywords after which an expression follows.
const OPERATORS: [&str; 10] = ["and", "elseif", "else", "if", "in", "not", "or", "return", "then", "until"];

fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut scanner = Scanner::new(source.as_bytes());
    scanner.at = source.len() - source.trim_start_matches('\u{FEFF}').len();
    let mut found = Vec::new();
    // For each open expression of an interpolated string: the number of open braces inside it.
    let mut interpolations: Vec<usize> = Vec::new();
    while let Some(byte) = scanner.peek() {
        let start = scanner.at;
        let mut inner = None;
        let kind = match byte {
            _ if byte.is_ascii_whitespace() => {
                scanner.at += 1;
                continue;
            }
            b'-' if scanner.starts_with(b"--") => {
                scanner.skip_comment();
                continue;
            }
            b'"' | b'\'' => {
                let is_plain = scanner.read_string().is_some();
                inner = Some((start + 1, scanner.at.saturating_sub(1)));
                if is_plain { TokenKind::PlainString } else { TokenKind::OtherString }
            }
            b'[' if scanner.long_bracket().is_some() => {
                let mark = scanner.long_bracket().unwrap_or_default() + 2;
                let _ = scanner.read_long_string();
                let first = start + mark;
                let has_newline = source.as_bytes().get(first) == Some(&b'\n');
                inner = Some((first + usize::from(has_newline), scanner.at.saturating_sub(mark)));
                TokenKind::PlainString
            }
            b'`' => {
                scanner.at += 1;
                interpolations.extend(scanner.skip_interpolated().then_some(0));
                TokenKind::OtherString
            }
            b'}' if interpolations.last() == Some(&0) => {
                interpolations.pop();
                scanner.at += 1;
                interpolations.extend(scanner.skip_interpolated().then_some(0));
                TokenKind::OtherString
            }
            _ if is_word(byte) => {
                scanner.read_word();
                TokenKind::Word
            }
            _ => {
                let symbol = SYMBOLS.iter().find(|symbol| scanner.starts_with(symbol.as_bytes()));
                scanner.at += symbol.map_or(1, |symbol| symbol.len());
                if let Some(open) = interpolations.last_mut() {
                    *open += usize::from(byte == b'{');
                    *open -= usize::from(byte == b'}');
                }
                TokenKind::Symbol
            }
        };
        let (start, end) = inner.unwrap_or((start, scanner.at));
        let text = source.get(start..end).unwrap_or_default();
        found.push(Token { kind, text, span: Span::new(start, start + text.len()) });
    }
    found
}

/// An open bracket or block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Bracket,
    /// Ends with `end` or `until`.
    Block,
    /// A statement, which ends with `end`.
    IfStatement,
    /// An expression, which ends somewhere after its `else`.
    IfExpression,
}

fn closes(tokens: &[Token<'_>]) -> Vec<Option<usize>> {
    let mut closes = vec![None; tokens.len()];
    // The open brackets and blocks. The last branch of an `if` statement stands for the statement.
    let mut open: Vec<(Open, usize)> = Vec::new();
    // Whether an expression must follow the last token.
    let mut wants_operand = false;
    for (index, token) in tokens.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| tokens.get(before)).map_or("", Token::code);
        let is_member = token.kind == TokenKind::Word && matches!(before, "." | ":");
        let code = if is_member { "" } else { token.code() };
        let mut close = |open: &mut Vec<(Open, usize)>, is_closed: fn(Open) -> bool| {
            while let Some((kind, from)) = open.pop() {
                if is_closed(kind) {
                    if let Some(slot) = closes.get_mut(from) {
                        *slot = Some(index);
                    }
                    break;
                }
            }
        };
        let in_expression = open.last().is_some_and(|(kind, _)| *kind == Open::IfExpression);
        let mut is_branch_of_statement = false;
        match code {
            "(" | "[" | "{" => open.push((Open::Bracket, index)),
            ")" | "]" | "}" => close(&mut open, |kind| kind == Open::Bracket),
            "function" | "do" | "repeat" => open.push((Open::Block, index)),
            "if" if wants_operand => open.push((Open::IfExpression, index)),
            "if" => open.push((Open::IfStatement, index)),
            "then" | "elseif" if in_expression => {}
            "else" if in_expression => drop(open.pop()),
            "then" | "elseif" | "else" => {
                close(&mut open, |kind| kind == Open::IfStatement);
                open.push((Open::IfStatement, index));
                is_branch_of_statement = code != "elseif";
            }
            "end" => close(&mut open, |kind| matches!(kind, Open::Block | Open::IfStatement)),
            "until" => close(&mut open, |kind| kind == Open::Block),
            _ => {}
        }
        wants_operand = match token.kind {
            TokenKind::Word => !is_branch_of_statement && (code == "while" || OPERATORS.contains(&code)),
            TokenKind::Symbol => !matches!(code, ")" | "]" | "}" | ";" | "..."),
            // After the text of an interpolated string, an expression may follow.
            TokenKind::OtherString => token.text.ends_with('{'),
            TokenKind::PlainString => false,
        };
    }
    closes
}
