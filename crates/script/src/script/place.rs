//! What a position in a script is in: code, a comment or a string.

use deftool_lang::text::Span;

use super::tokens::{Lexer, Token, TokenKind};

/// What an offset of a script is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptPlace {
    /// Code, between two tokens, or at the start or the end of a string or comment.
    Code,
    /// A comment, from its `--`.
    Comment(Span),
    /// A string, or the text of an interpolated one.
    String {
        /// The start of its content.
        content: usize,
        /// The name that is called with the string, such as `require` or `tool.load`; empty if there is none.
        callee: String,
    },
}

/// Returns what `offset` is in.
pub fn place_at(source: &str, offset: usize) -> ScriptPlace {
    let mut lexer = Lexer::new(source);
    let mut before = Vec::new();
    while let Some(token) = lexer.next() {
        let (start, end) = (lexer.start, lexer.at);
        if offset <= start {
            break;
        }
        if offset < end || (offset == end && !lexer.is_closed) {
            return match token.kind {
                TokenKind::Comment => ScriptPlace::Comment(token.span),
                TokenKind::PlainString | TokenKind::OtherString => {
                    // The text after an expression of an interpolated string is not the start of an argument.
                    let is_first = !source.get(start..).is_some_and(|text| text.starts_with('}'));
                    let callee = if is_first { callee(&before) } else { String::new() };
                    ScriptPlace::String { content: start + lexer.opening_at(start), callee }
                }
                TokenKind::Word | TokenKind::Symbol => ScriptPlace::Code,
            };
        }
        if token.kind != TokenKind::Comment {
            before.push(token);
        }
    }
    ScriptPlace::Code
}

/// Returns the name that is called with a string after these tokens.
fn callee(before: &[Token<'_>]) -> String {
    let mut rest = match before {
        [rest @ .., bracket] if bracket.code() == "(" => rest,
        all => all,
    };
    let mut parts = Vec::new();
    while let [more @ .., word] = rest {
        if word.kind != TokenKind::Word {
            break;
        }
        parts.push(word.text);
        match more {
            [more @ .., dot] if dot.code() == "." => {
                parts.push(".");
                rest = more;
            }
            // A method.
            [.., colon] if colon.code() == ":" => break,
            _ => {
                parts.reverse();
                return parts.concat();
            }
        }
    }
    // Not the field of a name.
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sources with the offset at `|`.
    #[test]
    fn places_are_in_code_comments_or_strings() {
        for (marked, expected) in [
            ("|", "code"),
            ("require(\"|\")", "require 9"),
            ("require(\n  '|a'", "require 12"),
            ("require '|'", "require 9"),
            ("require[[|]]", "require 9"),
            ("require[==[a]]|]==]", "require 11"),
            ("tool.load(\"a|\")", "tool.load 11"),
            ("x.tool.load(\"a|\")", "x.tool.load 13"),
            ("x:load(\"a|\")", " 8"),
            ("f().load(\"a|\")", " 10"),
            ("x = \"|\"", " 5"),
            ("-- require\n(\"|\")", " 13"),
            ("require(\"a\"|)", "code"),
            ("require(|\"a\")", "code"),
            ("require(\"a|\n", "require 9"),
            ("require(\"a\\\"|", "require 9"),
            ("-- require(\"|\")", "comment"),
            ("-- a|", "comment"),
            ("-- a\n|", "code"),
            ("--[[ require(\"|\") ]]", "comment"),
            ("--[[ a\n| ]]", "comment"),
            ("--[[ a ]]|", "code"),
            ("--[=[ a ]]|", "comment"),
            ("--|[[ a ]]", "comment"),
            ("[[ require(\"|\") ]]", " 2"),
            ("[[ a ]]|", "code"),
            ("`a|`", " 1"),
            ("`a {|b} c`", "code"),
            ("`a {b} |c`", " 6"),
            ("`a {b} c`|", "code"),
            ("\"--\" |", "code"),
        ] {
            let offset = marked.find('|').unwrap();
            let shown = match place_at(&marked.replace('|', ""), offset) {
                ScriptPlace::Code => String::from("code"),
                ScriptPlace::Comment(_) => String::from("comment"),
                ScriptPlace::String { content, callee } => format!("{callee} {content}"),
            };
            assert_eq!(shown, expected, "{marked}");
        }
    }
}
