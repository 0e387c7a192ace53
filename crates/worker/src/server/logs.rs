//! The output of a managed server: its last lines, bounded, without secrets and control characters.

use std::collections::VecDeque;
use std::sync::Mutex;

use deftool_lang::text::is_readable;
use deftool_process::lock;
use deftool_record::Redactor;

/// Maximum number of lines kept.
const MAX_LINES: usize = 500;
/// Maximum total size of the lines kept, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// Maximum length of a line, in bytes. Longer lines are truncated.
const MAX_LINE: usize = 2 << 10;

/// The last lines of a server's output, across its restarts.
#[derive(Debug)]
pub(super) struct Logs(Mutex<Ring>);

#[derive(Debug)]
struct Ring {
    lines: VecDeque<String>,
    bytes: usize,
    /// State of the escape sequence parser.
    sequence: Sequence,
    /// The incomplete last line, truncated if it is too long.
    open: Vec<u8>,
    is_cut: bool,
    redactor: Redactor,
}

impl Logs {
    /// Creates an empty log that redacts `secrets`.
    pub(super) fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        Self(Mutex::new(Ring {
            lines: VecDeque::new(),
            bytes: 0,
            sequence: Sequence::None,
            open: Vec::new(),
            is_cut: false,
            redactor: Redactor::new(secrets),
        }))
    }

    /// Adds output of the server, in chunks of any size.
    pub(super) fn feed(&self, mut bytes: Vec<u8>) {
        let mut ring = lock(&self.0);
        // Escape sequences are removed before redaction, because they may split a secret.
        bytes.retain(|byte| ring.sequence.is_text(*byte));
        let bytes = ring.redactor.feed(bytes.into());
        ring.take(&bytes);
    }

    /// Ends the output. An incomplete last line is added as a line.
    pub(super) fn end(&self) {
        let mut ring = lock(&self.0);
        let rest = ring.redactor.cut();
        ring.take(&rest);
        ring.end_line();
    }

    /// Returns the last `count` lines, oldest first.
    pub(super) fn last(&self, count: usize) -> Vec<String> {
        let ring = lock(&self.0);
        ring.lines.iter().skip(ring.lines.len().saturating_sub(count)).cloned().collect()
    }
}

impl Ring {
    fn take(&mut self, bytes: &[u8]) {
        // A carriage return alone redraws a progress bar, so it also ends a line.
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, ends) = match piece.split_last() {
                Some((b'\n' | b'\r', text)) => (text, true),
                _ => (piece, false),
            };
            let room = MAX_LINE.saturating_sub(self.open.len());
            self.is_cut |= text.len() > room;
            self.open.extend_from_slice(text.get(..room).unwrap_or(text));
            if ends {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let mut line = plain(&String::from_utf8_lossy(&self.open));
        self.open.clear();
        if std::mem::take(&mut self.is_cut) {
            line.push('…');
        }
        if line.trim().is_empty() {
            return;
        }
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.lines.len() > MAX_LINES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }
}

/// The parser state for terminal escape sequences (ECMA-48).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sequence {
    /// Outside of a sequence.
    None,
    /// After ESC.
    Begun,
    /// In `ESC [ … letter`.
    Control,
    /// In `ESC ] … BEL`, `ESC ] … ESC \` or a similar sequence.
    Text,
}

impl Sequence {
    /// Consumes a byte and returns whether it is text. A line break is text and ends every sequence.
    fn is_text(&mut self, byte: u8) -> bool {
        let next = match (*self, byte) {
            (_, b'\n' | b'\r') => {
                *self = Self::None;
                return true;
            }
            (_, 0x1b) => Self::Begun,
            (Self::Begun, b'[') => Self::Control,
            (Self::Begun, b']' | b'P' | b'X' | b'^' | b'_') => Self::Text,
            // Intermediate bytes.
            (Self::Begun, 0x20..=0x2f) => Self::Begun,
            (Self::Control, 0x40..=0x7e) | (Self::Begun, _) | (Self::Text, 0x07) => Self::None,
            (Self::Control | Self::Text, _) => return false,
            // Other control characters are dropped.
            (Self::None, byte) => return byte == b'\t' || !byte.is_ascii_control(),
        };
        *self = next;
        false
    }
}

/// Returns `text` without hidden characters and trailing whitespace.
fn plain(text: &str) -> String {
    let character = |character| match character {
        '\t' => ' ',
        character if is_readable(character) => character,
        _ => char::REPLACEMENT_CHARACTER,
    };
    let mut line: String = text.chars().map(character).collect();
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(pieces: &[&[u8]]) -> Vec<String> {
        let logs = Logs::new(["sk-secret-key", "hf_other"]);
        for piece in pieces {
            logs.feed(piece.to_vec());
        }
        logs.end();
        logs.last(usize::MAX)
    }

    #[test]
    fn lines_are_complete_for_any_chunks_and_contain_no_control_characters() {
        assert_eq!(logged(&[b"one\ntw", b"o\n\n\nthree"]), ["one", "two", "three"]);
        assert_eq!(logged(&[b"10%\r20%\r\nend \n"]), ["10%", "20%", "end"]);
        assert_eq!(logged(&[b"\x1b[1;31mred\x1b[0m \x07bell\tx\xff\n"]), ["red bell x\u{fffd}"]);
        // Titles, links, character sets. An unterminated sequence ends with its line.
        assert_eq!(
            logged(&[b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b(Bc \x1b[1\nd\x1b]0;\ne\xc2\x9b"]),
            ["abc", "d", "e\u{fffd}"]
        );
    }

    #[test]
    fn secrets_are_redacted_for_any_chunks() {
        let text = b"key sk-secret-key, token hf_other, sk-secret-kex";
        for size in 1..text.len() {
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(logged(&pieces), ["key [redacted], token [redacted], sk-secret-kex"], "{size}");
        }
        let coloured = b"key sk-sec\x1b[1mret\x1b[0m-\x00key\x1b]0;x\x07, token h\x1b[Kf_other";
        for size in 1..coloured.len() {
            let pieces: Vec<&[u8]> = coloured.chunks(size).collect();
            assert_eq!(logged(&pieces), ["key [redacted], token [redacted]"], "{size}");
        }
    }

    #[test]
    fn large_output_is_bounded() {
        let logs = Logs::new([]);
        for _ in 0..2_000 {
            logs.feed(vec![b'x'; 64 << 10]);
        }
        for number in 0..100_000 {
            logs.feed(format!("\n{number}").into_bytes());
        }
        logs.feed(vec![b'\n'; 1 << 20]);
        let lines = logs.last(usize::MAX);
        assert_eq!(lines.len(), MAX_LINES);
        assert_eq!(lines.last().unwrap(), "99999");
        logs.feed(std::iter::repeat_n([b'y'; 4096].to_vec(), 500).fold(Vec::new(), |mut all, line| {
            all.extend(line);
            all.push(b'\n');
            all
        }));
        let lines = logs.last(usize::MAX);
        assert!(lines.iter().map(String::len).sum::<usize>() <= MAX_BYTES);
        assert_eq!(lines.last().unwrap().len(), MAX_LINE + '…'.len_utf8());
        assert_eq!(logs.last(3).len(), 3);
    }
}
