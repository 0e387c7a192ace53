//! The tokens and comments of a script, with their spans, and which brackets and blocks belong together.
//!
//! For questions that the bytecode does not answer, because it has no columns. Scripts that do not compile have tokens
//! too, but their blocks may be wrong.

use std::ops::Range;

use deftool_lang::text::Span;

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
    /// A comment, from its `--`.
    Comment,
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
        let all: Vec<Token<'_>> =
            Lexer::new(source).filter(|token| token.kind != TokenKind::Comment).collect();
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
    pub(super) fn code(&self) -> &'s str {
        match self.kind {
            TokenKind::Word | TokenKind::Symbol => self.text,
            TokenKind::PlainString | TokenKind::OtherString | TokenKind::Comment => "",
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

/// A word of a script: a name, a keyword or a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'s> {
    /// The word.
    pub text: &'s str,
    /// The offset of its first byte.
    pub start: usize,
    /// Whether it is the name of a field or method: `t.name`, `t:name()`, `{name = 1}`.
    pub is_field: bool,
}

/// Returns the words of `source` outside of comments and strings, in order.
pub fn words(source: &str) -> Vec<Word<'_>> {
    let tokens = Tokens::of(source);
    let (mut found, mut brackets) = (Vec::new(), Vec::new());
    for (index, token) in tokens.iter() {
        match tokens.code(index) {
            open @ ("(" | "[" | "{") => brackets.push(open),
            ")" | "]" | "}" => {
                brackets.pop();
            }
            text if token.kind == TokenKind::Word => {
                let is_key = brackets.last() == Some(&"{")
                    && matches!(tokens.code_before(index), "{" | "," | ";")
                    && tokens.get(index + 1).is_some_and(|next| {
                        // A type: `{name: string}`. A blank distinguishes it from a method: `{name:trim()}`.
                        let is_type = || source.as_bytes().get(next.span.end as usize) == Some(&b' ');
                        next.code() == "=" || (next.code() == ":" && is_type())
                    });
                let is_field = is_key || tokens.is_member(index);
                found.push(Word { text, start: token.span.start as usize, is_field });
            }
            _ => {}
        }
    }
    found
}

/// Counts the occurrences of `name` as a word in `source`, outside of comments and strings.
pub fn count_word(source: &[u8], name: &str) -> usize {
    let source = String::from_utf8_lossy(source);
    Lexer::new(&source).filter(|token| token.kind == TokenKind::Word && token.text == name).count()
}

/// Returns the comments of `source`, each from its `--` to the end of its line or its long bracket.
pub fn comments(source: &str) -> Vec<Span> {
    Lexer::new(source).filter(|token| token.kind == TokenKind::Comment).map(|token| token.span).collect()
}

/// Reads the tokens and comments of a source.
pub(super) struct Lexer<'s> {
    source: &'s str,
    /// The start of the last token, with its marks.
    pub(super) start: usize,
    /// The end of the last token, with its marks.
    pub(super) at: usize,
    /// Whether the last token has an end of its own. A line comment ends with its line.
    pub(super) is_closed: bool,
    /// For each open expression of an interpolated string: the number of open braces inside it.
    interpolations: Vec<usize>,
}

impl<'s> Iterator for Lexer<'s> {
    type Item = Token<'s>;

    fn next(&mut self) -> Option<Token<'s>> {
        let rest = self.rest();
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let start = self.at;
        (self.start, self.is_closed) = (start, true);
        let mut content = None;
        let kind = match self.peek()? {
            b'-' if self.rest().starts_with(b"--") => {
                self.skip_comment();
                TokenKind::Comment
            }
            b'"' | b'\'' => {
                let is_plain = self.skip_quoted();
                content = Some(start + 1..self.at.saturating_sub(1));
                if is_plain { TokenKind::PlainString } else { TokenKind::OtherString }
            }
            b'[' if self.long_bracket().is_some() => {
                content = self.skip_long_string();
                if content.is_some() { TokenKind::PlainString } else { TokenKind::OtherString }
            }
            b'`' => {
                self.skip_interpolated();
                TokenKind::OtherString
            }
            // The end of an expression, which did not begin with a brace of its own.
            b'}' if self.interpolations.last() == Some(&0) => {
                self.interpolations.pop();
                self.skip_interpolated();
                TokenKind::OtherString
            }
            byte if is_word(byte) => {
                self.at += self.rest().iter().take_while(|byte| is_word(**byte)).count();
                TokenKind::Word
            }
            byte => {
                let symbol = SYMBOLS.iter().find(|symbol| self.rest().starts_with(symbol.as_bytes()));
                self.at += symbol.map_or(1, |symbol| symbol.len());
                if let Some(open) = self.interpolations.last_mut() {
                    *open += usize::from(byte == b'{');
                    *open -= usize::from(byte == b'}');
                }
                TokenKind::Symbol
            }
        };
        let range = content.unwrap_or(start..self.at);
        let start = range.start;
        let text = self.source.get(range).unwrap_or_default();
        Some(Token { kind, text, span: Span::new(start, start + text.len()) })
    }
}

impl<'s> Lexer<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        let at = source.len() - source.trim_start_matches('\u{FEFF}').len();
        Self { source, start: at, at, is_closed: true, interpolations: Vec::new() }
    }

    /// Returns the length of the marks that open the string at `start`.
    pub(super) fn opening_at(&self, start: usize) -> usize {
        Lexer { at: start, ..Lexer::new(self.source) }.long_bracket().map_or(1, |level| level + 2)
    }

    fn rest(&self) -> &'s [u8] {
        self.source.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    fn skip_comment(&mut self) {
        self.at += 2;
        if self.long_bracket().is_some() {
            self.skip_long_string();
        } else {
            let rest = self.rest();
            self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            self.is_closed = false;
        }
    }

    /// Returns the number of `=` in the long bracket that starts here.
    fn long_bracket(&self) -> Option<usize> {
        let rest = self.rest().strip_prefix(b"[")?;
        let level = rest.iter().position(|byte| *byte != b'=')?;
        (rest.get(level) == Some(&b'[')).then_some(level)
    }

    /// Skips a string or comment in long brackets. Returns the range of its content if it is closed.
    fn skip_long_string(&mut self) -> Option<Range<usize>> {
        let level = self.long_bracket()?;
        let start = self.at + level + 2;
        let close = [b"]".as_slice(), &vec![b'='; level], b"]"].concat();
        let rest = self.source.as_bytes().get(start..).unwrap_or_default();
        let length = memchr::memmem::find(rest, &close);
        self.is_closed = length.is_some();
        self.at = length.map_or(self.source.len(), |length| start + length + close.len());
        // A newline right after the bracket is not part of the text.
        let has_newline = rest.first() == Some(&b'\n');
        length.map(|length| start + usize::from(has_newline)..start + length)
    }

    /// Skips a quoted string. Returns whether it is closed and has no escapes.
    fn skip_quoted(&mut self) -> bool {
        let quote = self.peek();
        self.at += 1;
        let mut is_plain = true;
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => {
                    is_plain = false;
                    self.at += 1;
                }
                b'\n' => break,
                _ if Some(byte) == quote => {
                    self.at += 1;
                    return is_plain;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.is_closed = false;
        false
    }

    /// Skips a quote or brace and the text of an interpolated string after it, up to the next expression or its end.
    fn skip_interpolated(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'{' => {
                    self.interpolations.push(0);
                    return;
                }
                b'`' => return,
                _ => {}
            }
        }
        self.is_closed = false;
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
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
            TokenKind::PlainString | TokenKind::Comment => false,
        };
    }
    closes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_variables_or_fields() {
        let shown = |source| {
            let words = words(source).into_iter();
            words.map(|word| if word.is_field { format!(".{}", word.text) } else { word.text.to_owned() })
        };
        for (source, expected) in [
            ("a.b:c(d) -- e", "a .b .c d"),
            ("t = {a = a, b == c, d; e = 1, [f] = g}", "t .a a b c d .e 1 f g"),
            ("f(a, b) {x, y}", "f a b x y"),
            ("{ -- b\n a = 1, --[[ c ]] d = 2 }", ".a 1 .d 2"),
            ("type T = {a: number, b: string} {c:trim()}", "type T .a .number .b .string c .trim"),
            ("a .. b ..c `x {d} {{e = f}}` 'g'", "a b c d .e f"),
        ] {
            assert_eq!(shown(source).collect::<Vec<_>>().join(" "), expected, "{source}");
        }
    }
}
