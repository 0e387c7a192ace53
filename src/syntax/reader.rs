//! Emacs-Lisp text → tree.
//!
//! Total: whatever the text, there is a tree, and findings for what could not be read. Iterative and linear: a
//! million open parentheses cost a million stack entries on the heap. Nothing is decoded here but what is needed
//! to find ends; atoms keep their text.
//!
//! Where something is never closed, the text is read a second time, taking an opening parenthesis in the first
//! column as the start of a new top-level form (the convention Emacs itself navigates by), so that one missing
//! parenthesis costs one form and not the rest of the file.
//!
//! Source: chapter "Printed Representation and Read Syntax" of the Emacs Lisp reference manual (Emacs 30).

use super::escape;
use super::tree::{Kind, Node, NodeId, Tree};
use crate::diagnostic::{Diagnostic, Rule, rules};
use crate::text::{Location, SourceId, Span};

/// Reading findings of one file beyond this many are not told: the file is not what it seems to be.
const MAX_FINDINGS: usize = 100;

/// Reads `text`, the whole of `source`.
pub fn parse(source: SourceId, text: &str) -> (Tree, Vec<Diagnostic>) {
    let mut reader = Reader::new(source, text, false);
    reader.read();
    if reader.left_open {
        reader = Reader::new(source, text, true);
        reader.read();
    }
    (reader.tree, reader.findings)
}

struct Reader<'t> {
    source: SourceId,
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    tree: Tree,
    /// Nodes that are open: lists, vectors, opaque forms and prefixes that wait for their form.
    open: Vec<u32>,
    open_lists: usize,
    open_vectors: usize,
    findings: Vec<Diagnostic>,
    resync: bool,
    left_open: bool,
}

impl<'t> Reader<'t> {
    fn new(source: SourceId, text: &'t str, resync: bool) -> Self {
        let mut tree = Tree::default();
        tree.nodes.reserve(text.len() / 12);
        Self {
            source,
            text,
            bytes: text.as_bytes(),
            at: 0,
            tree,
            open: Vec::new(),
            open_lists: 0,
            open_vectors: 0,
            findings: Vec::new(),
            resync,
            left_open: false,
        }
    }

    fn read(&mut self) {
        if self.text.starts_with('\u{FEFF}') {
            self.at = 3;
        }
        if self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(b"#!")) {
            self.skip_comment();
        }
        while let Some(&byte) = self.bytes.get(self.at) {
            match CLASS[byte as usize] {
                Class::Space => self.at += 1,
                Class::Atom => self.read_atom(),
                Class::Special => self.read_special(byte),
            }
        }
        self.close_at_end();
    }

    fn read_special(&mut self, byte: u8) {
        match byte {
            b'(' => {
                if self.resync && !self.open.is_empty() && self.in_first_column() {
                    self.close_all_unclosed(self.at);
                }
                self.open_lists += 1;
                self.open(Kind::List, 1);
            }
            b'[' => {
                self.open_vectors += 1;
                self.open(Kind::Vector, 1);
            }
            b')' => self.close(b')'),
            b']' => self.close(b']'),
            b'"' => self.read_string(),
            b'\'' => self.open(Kind::Quote, 1),
            b'`' => self.open(Kind::Backquote, 1),
            b',' if self.bytes.get(self.at + 1) == Some(&b'@') => self.open(Kind::Splice, 2),
            b',' => self.open(Kind::Unquote, 1),
            b';' => self.skip_comment(),
            b'?' => self.read_character(),
            b'#' => self.read_hash(),
            // A no-break space (C2 A0) separates; any other character that starts with this byte is an atom's.
            0xC2 if self.bytes.get(self.at + 1) == Some(&0xA0) => self.at += 2,
            _ => self.read_atom(),
        }
    }

    fn in_first_column(&self) -> bool {
        self.at.checked_sub(1).is_none_or(|before| self.bytes.get(before) == Some(&b'\n'))
    }

    fn skip_comment(&mut self) {
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let end = start + len - usize::from(len > 0 && rest.get(len - 1) == Some(&b'\r'));
        self.tree.comments.push(Span::new(start, end));
        self.at = start + len;
    }

    // --- nodes -----------------------------------------------------------------------------------------------

    fn push(&mut self, kind: Kind, start: usize, end: usize) -> u32 {
        let id = self.tree.nodes.len() as u32;
        self.tree.nodes.push(Node { kind, span: Span::new(start, end), end: id + 1 });
        id
    }

    fn open(&mut self, kind: Kind, len: usize) {
        let id = self.push(kind, self.at, self.at + len);
        self.open.push(id);
        self.at += len;
    }

    fn leaf(&mut self, kind: Kind, start: usize, end: usize) {
        self.push(kind, start, end);
        self.at = end;
        self.complete_prefixes();
    }

    /// A form is whole: every prefix that waited for it is whole, too.
    fn complete_prefixes(&mut self) {
        while let Some(&top) = self.open.last() {
            match self.tree.nodes.get(top as usize) {
                Some(node) if node.kind.is_prefix() => self.end_node(top, self.at),
                _ => return,
            }
            self.open.pop();
        }
    }

    fn end_node(&mut self, id: u32, end_byte: usize) {
        let end = self.tree.nodes.len() as u32;
        if let Some(node) = self.tree.nodes.get_mut(id as usize) {
            node.span.end = end_byte as u32;
            node.end = end;
        }
    }

    fn close(&mut self, closer: u8) {
        let opener_is_open = if closer == b')' { self.open_lists > 0 } else { self.open_vectors > 0 };
        if !opener_is_open {
            let span = Span::new(self.at, self.at + 1);
            self.find(&rules::STRAY_CLOSER, span, format!("`{}` closes nothing", closer as char));
            self.at += 1;
            return;
        }
        let mut told = false;
        while let Some(id) = self.open.pop() {
            let Some(node) = self.tree.nodes.get(id as usize).copied() else { continue };
            if node.kind.is_prefix() {
                if !told {
                    self.tell_lonely_prefix(node);
                    told = true;
                }
                self.end_node(id, self.at);
                continue;
            }
            let bracket = self.bytes.get(node.span.end as usize - 1).copied();
            let is_list = bracket == Some(b'(');
            if is_list {
                self.open_lists -= 1;
            } else {
                self.open_vectors -= 1;
            }
            if is_list == (closer == b')') {
                self.at += 1;
                self.end_node(id, self.at);
                self.complete_prefixes();
                return;
            }
            // One wrong closer is one mistake, however much it skips.
            if !told {
                self.tell_unclosed(node.span, self.at);
                told = true;
            }
            self.end_node(id, self.at);
        }
    }

    fn close_at_end(&mut self) {
        let end = self.bytes.len();
        if self.open.iter().any(|&id| self.tree.nodes.get(id as usize).is_some_and(|n| !n.kind.is_prefix())) {
            self.left_open = true;
        }
        self.close_all_unclosed(end);
    }

    /// Ends everything that is open at byte `end`; the outermost opener is named, the others follow from it.
    fn close_all_unclosed(&mut self, end: usize) {
        let open = std::mem::take(&mut self.open);
        let outermost = open
            .iter()
            .filter_map(|&id| self.tree.nodes.get(id as usize).copied())
            .find(|node| !node.kind.is_prefix());
        if let Some(node) = outermost {
            self.tell_unclosed(node.span, end);
        } else if let Some(node) = open.last().and_then(|&id| self.tree.nodes.get(id as usize).copied()) {
            self.tell_lonely_prefix(node);
        }
        // Blanks after the last form belong to nobody; an unclosed string's own blanks are its text.
        let trimmed = self.text.get(..end).map_or(end, |before| before.trim_end().len());
        let trimmed = trimmed.max(self.tree.nodes.last().map_or(0, |last| last.span.end as usize)).min(end);
        for id in open.into_iter().rev() {
            self.end_node(id, trimmed);
        }
        self.open_lists = 0;
        self.open_vectors = 0;
    }

    // --- atoms -----------------------------------------------------------------------------------------------

    fn read_atom(&mut self) {
        let start = self.at;
        let end = self.atom_end(start);
        let token = self.bytes.get(start..end).unwrap_or_default();
        let kind = match token.first() {
            Some(b':') => Kind::Keyword,
            Some(b'.') if token.len() == 1 => Kind::Dot,
            Some(b'0'..=b'9' | b'+' | b'-' | b'.') => super::number::classify(token).unwrap_or(Kind::Symbol),
            _ => Kind::Symbol,
        };
        self.leaf(kind, start, end);
    }

    /// The end of the atom that starts at `start`; at least one character after it.
    fn atom_end(&self, start: usize) -> usize {
        let mut end = start;
        while let Some(&byte) = self.bytes.get(end) {
            match byte {
                b'\\' => end += 1 + self.char_len(end + 1),
                0xC2 if self.bytes.get(end + 1) == Some(&0xA0) => break,
                b'?' | 0xC2 => end += 1,
                _ if CLASS[byte as usize] == Class::Atom => end += 1,
                _ => break,
            }
        }
        end.max(start + self.char_len(start)).min(self.bytes.len())
    }

    /// Bytes of the character at `at`; 0 at the end.
    fn char_len(&self, at: usize) -> usize {
        self.text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
    }

    fn read_string(&mut self) {
        let start = self.at;
        let mut at = start + 1;
        let mut escaped = false;
        let end = loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            match memchr::memchr2(b'"', b'\\', rest).map(|found| (at + found, rest.get(found))) {
                Some((quote, Some(b'"'))) => break quote,
                Some((backslash, _)) => {
                    escaped = true;
                    at = backslash + 1 + self.char_len(backslash + 1);
                }
                None => {
                    self.tell_unclosed(Span::new(start, start + 1), self.bytes.len());
                    self.leaf(Kind::String, start, self.bytes.len());
                    return;
                }
            }
        };
        if escaped {
            self.check_escapes(start + 1, end);
        }
        self.leaf(Kind::String, start, end + 1);
    }

    fn check_escapes(&mut self, start: usize, end: usize) {
        let mut problems = Vec::new();
        escape::decode_string(self.text.get(start..end).unwrap_or(""), &mut problems);
        for problem in problems {
            let at = start + problem.at;
            self.find(problem.rule, Span::new(at, at + problem.len), problem.message);
        }
    }

    fn read_character(&mut self) {
        let start = self.at;
        let (code, len) = escape::decode_character(self.text.get(start + 1..).unwrap_or(""));
        let mut end = start + 1 + len;
        match code {
            Err(message) => self.find(&rules::BAD_CHARACTER, Span::new(start, end), message),
            Ok(_) if self.delimiter_at(end) => {}
            Ok(_) => {
                end = self.atom_end(end);
                let message = String::from("`?` takes one character, and more follows");
                self.find(&rules::BAD_CHARACTER, Span::new(start, end), message);
            }
        }
        self.leaf(Kind::Character, start, end.max(start + 1));
    }

    fn delimiter_at(&self, at: usize) -> bool {
        match self.bytes.get(at) {
            None => true,
            Some(0xC2) => self.bytes.get(at + 1) == Some(&0xA0),
            Some(&byte) => CLASS[byte as usize] != Class::Atom,
        }
    }

    // --- reader syntax after # ---------------------------------------------------------------------------------

    fn read_hash(&mut self) {
        let start = self.at;
        let rest = self.bytes.get(start + 1..).unwrap_or_default();
        match rest {
            [b'\'', ..] => self.open(Kind::Function, 2),
            [b'(', ..] => self.open_opaque(1),
            [b's', b'(', ..] => self.open_opaque(2),
            [b'[', ..] => self.open_opaque(1),
            [b'^', b'[', ..] => self.open_opaque(2),
            [b'^', b'^', b'[', ..] => self.open_opaque(3),
            [b'@', ..] => self.skip_counted(),
            [b'#' | b'$', ..] => self.leaf(Kind::Opaque, start, start + 2),
            [b':' | b'_', ..] => {
                let end = if self.delimiter_at(start + 2) { start + 2 } else { self.atom_end(start + 2) };
                self.leaf(Kind::Opaque, start, end);
            }
            [b'&', ..] => {
                let digits = rest.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
                self.at = start + 2 + digits;
                if self.bytes.get(self.at) == Some(&b'"') {
                    self.read_string();
                    if let Some(node) = self.tree.nodes.last_mut() {
                        node.kind = Kind::Opaque;
                    }
                } else {
                    self.tell_unknown_hash(start, self.at);
                }
            }
            [b'x' | b'X' | b'o' | b'O' | b'b' | b'B', ..] => self.read_radix(start),
            [b'0'..=b'9', ..] => {
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                match rest.get(digits) {
                    Some(b'r' | b'R') => self.read_radix(start),
                    Some(b'=') => {
                        // `#1=x` labels x and is x.
                        self.at = start + 2 + digits;
                    }
                    Some(b'#') => self.leaf(Kind::Opaque, start, start + 2 + digits),
                    _ => self.tell_unknown_hash(start, start + 1 + digits),
                }
            }
            _ => self.tell_unknown_hash(start, start + 1 + self.char_len(start + 1)),
        }
    }

    fn open_opaque(&mut self, before_bracket: usize) {
        if self.bytes.get(self.at + before_bracket) == Some(&b'(') {
            self.open_lists += 1;
        } else {
            self.open_vectors += 1;
        }
        self.open(Kind::Opaque, before_bracket + 1);
    }

    /// `#@N` skips N bytes, `#@00` the rest of the file.
    fn skip_counted(&mut self) {
        let start = self.at;
        let digits: &str = self.text.get(start + 2..).unwrap_or("");
        let digits = digits.get(..digits.bytes().take_while(u8::is_ascii_digit).count()).unwrap_or("");
        let after = start + 2 + digits.len();
        let mut end = match digits {
            "00" => self.bytes.len(),
            _ => after.saturating_add(digits.parse().unwrap_or(0)).min(self.bytes.len()),
        };
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        self.tree.comments.push(Span::new(start, end));
        self.at = end;
    }

    fn read_radix(&mut self, start: usize) {
        let end = self.atom_end(start + 1);
        if super::number::parse_radix(Span::new(start, end).of(self.text)).is_none() {
            self.tell_unknown_hash(start, end);
        } else {
            self.leaf(Kind::Integer, start, end);
        }
    }

    fn tell_unknown_hash(&mut self, start: usize, end: usize) {
        let end = end.min(self.bytes.len());
        let span = Span::new(start, end);
        let message = format!("`{}` is no reader syntax of Emacs Lisp", span.of(self.text));
        self.find(&rules::UNKNOWN_HASH, span, message);
        self.leaf(Kind::Opaque, start, end);
    }

    // --- findings ----------------------------------------------------------------------------------------------

    fn tell_unclosed(&mut self, opener: Span, end: usize) {
        let what = opener.of(self.text).to_owned();
        let after = if end >= self.bytes.len() {
            String::from("the end of the file")
        } else {
            format!("`{}`", self.text.get(end..).and_then(|rest| rest.chars().next()).unwrap_or(' '))
        };
        let location = Location { source: self.source, span: opener };
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(
                Diagnostic::new(&rules::UNCLOSED, location, format!("`{what}` is never closed"))
                    .labelled(format!("opened here and still open at {after}")),
            );
        }
    }

    fn tell_lonely_prefix(&mut self, node: Node) {
        let message = format!("`{}` is followed by no form", node.span.of(self.text));
        self.find(&rules::PREFIX_WITHOUT_FORM, node.span, message);
    }

    fn find(&mut self, rule: &'static Rule, span: Span, message: String) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Diagnostic::new(rule, Location { source: self.source, span }, message));
        }
    }
}

impl Tree {
    /// The source text of a node.
    pub fn text<'t>(&self, id: NodeId, source: &'t str) -> &'t str {
        self.span(id).of(source)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Separates.
    Space,
    /// Continues or starts a symbol or number.
    Atom,
    /// Everything the reader looks at itself; ends an atom, but for `?` and the first byte of a no-break space.
    Special,
}

static CLASS: [Class; 256] = {
    let mut table = [Class::Atom; 256];
    let mut byte = 0;
    while byte <= 0x20 {
        table[byte] = Class::Space;
        byte += 1;
    }
    let specials = b"()[]\"'`,;?#\xC2";
    let mut at = 0;
    while at < specials.len() {
        table[specials[at] as usize] = Class::Special;
        at += 1;
    }
    table
};
