//! Characters that come with text copied from web pages, chats and word processors: typographic quotation marks, and
//! spaces that Emacs treats as letters. Each is reported once and read as intended.

use super::reader::Reader;
use crate::syntax::rules::{odd_blank, smart_quote};
use crate::syntax::tree::Kind;
use crate::text::Span;

/// Maximum length of a string between typographic marks, in bytes.
const MAX_STRING: usize = 4096;

impl Reader<'_> {
    /// Reads pasted characters at a non-ASCII byte. Returns whether there were any.
    pub(super) fn skip_pasted(&mut self) -> bool {
        let start = self.at;
        let Some(first) = self.char_at(start) else { return false };
        if odd_blank::is_odd(first) {
            let rest = self.text.get(start..).unwrap_or("");
            let len = rest.find(|character| !odd_blank::is_odd(character)).unwrap_or(rest.len());
            let span = Span::new(start, start + len);
            self.report(odd_blank::finding(self.at(span), span.of(self.text)));
            // A zero-width space inside a word splits it into two tokens, so findings here are unreliable.
            let is_after_word = start.checked_sub(1).is_some_and(|before| !self.delimiter_at(before));
            if odd_blank::has_no_width(span.of(self.text)) && is_after_word && !self.delimiter_at(start + len)
            {
                self.mark_misnested(start, start + len);
            }
            self.at += len;
            return true;
        }
        if matches!(first, '‘' | '’' | '‛' | '＇') {
            self.read_single_mark(first);
            return true;
        }
        let Some(closers) = smart_quote::closers(first) else { return false };
        match self.end_of_marked(start + first.len_utf8(), closers) {
            Some(end) => {
                let span = Span::new(start, end);
                self.report(smart_quote::string(self.at(span), span.of(self.text)));
                if let Some(newline) = span.of(self.text).rfind('\n') {
                    self.line_start = start + newline + 1;
                }
                self.push_string(start, end);
                true
            }
            // Guillemets are names in some programs.
            None if first == '«' => false,
            None => {
                let end = start + first.len_utf8();
                self.report(smart_quote::mark(self.at(Span::new(start, end)), first));
                // The text after the mark is prose, read as symbols.
                self.mark_misnested(start, end);
                self.at = end;
                true
            }
        }
    }

    /// Returns the end of the closing mark for `start`, unless a form in the first column starts before it.
    fn end_of_marked(&self, start: usize, closers: &[char]) -> Option<usize> {
        let mut before = ' ';
        for (at, character) in self.text.get(start..)?.char_indices().take_while(|(at, _)| *at < MAX_STRING) {
            if closers.contains(&character) {
                return Some(start + at + character.len_utf8());
            }
            if before == '\n' && character == '(' {
                return None;
            }
            before = character;
        }
        None
    }

    /// Reads `:description 'Tell the time.'`, as other languages quote. Returns whether there was such a string.
    pub(super) fn skip_single_quoted(&mut self) -> bool {
        let start = self.at;
        let is_described = self
            .tree
            .nodes
            .last()
            .is_some_and(|node| node.kind == Kind::Keyword && node.span.of(self.text) == ":description");
        if !is_described {
            return false;
        }
        let rest = self.text.get(start + 1..).unwrap_or("");
        // Search for both at once: a line may be long and contain many quotes.
        let parts = rest.find(['\'', '\n']).and_then(|len| rest.split_at_checked(len));
        let Some((inside, after)) = parts.filter(|(_, after)| after.starts_with('\'')) else { return false };
        let follows = after.chars().nth(1);
        let ends = follows.is_none_or(|next| next.is_whitespace() || next == ')');
        if !inside.contains(' ') || inside.contains(['"', '\\', '(', ')']) || inside.ends_with(' ') || !ends {
            return false;
        }
        let end = start + 1 + inside.len() + 1;
        self.report(smart_quote::single(self.at(Span::new(start, end))));
        self.push_string(start, end);
        true
    }

    /// Reads `‘word` and `‘word’` as the word.
    fn read_single_mark(&mut self, mark: char) {
        let (start, word) = (self.at, self.at + mark.len_utf8());
        self.report(smart_quote::mark(self.at(Span::new(start, word)), mark));
        self.at = word;
        let is_word = self.bytes.get(word).is_some_and(u8::is_ascii_alphabetic);
        let end = if is_word { self.atom_end(word) } else { word };
        let text = self.text.get(word..end).unwrap_or("");
        let plain = text.trim_end_matches(['‘', '’', '‛', '＇']);
        if plain.len() < text.len() {
            self.leaf(Kind::Symbol, word, word + plain.len());
            self.at = end;
        }
    }
}
