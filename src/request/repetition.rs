//! Lines that repeat: a model that has lost its way.
//!
//! In: the text of one reply, in any pieces. Out: where the line ends that is one repetition too many.
//! A line is known by its length in characters and a hash, trailing blanks aside, so memory is constant; time is
//! linear. Repetitions count when they follow each other: of one line, or of a cycle of two to eight lines, which
//! is measured by its lines' length together. Lines without content (blank, rules, bare bullets, closing
//! brackets) are passed over as if they were not there.

use serde::{Deserialize, Serialize};

/// Cycles of more lines are not looked for.
const MAX_CYCLE: usize = 8;

/// Fewer repetitions than this never count, whatever the thresholds say.
const MIN_OCCURRENCES: u32 = 4;

/// From which length on how many occurrences in a row are a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepetitionThreshold {
    /// The shortest line, or cycle, that this is about, in characters.
    pub min_chars: u64,
    /// So many in a row are a loop; at least four.
    pub occurrences: u32,
}

/// The thresholds that hold unless others are given.
pub fn default_thresholds() -> Vec<RepetitionThreshold> {
    [(80, 4), (32, 6), (12, 12), (4, 24), (0, 64)]
        .map(|(min_chars, occurrences)| RepetitionThreshold { min_chars, occurrences })
        .to_vec()
}

/// Watches the lines of one reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineDetector {
    thresholds: Vec<RepetitionThreshold>,
    line: Line,
    /// The last lines, newest first.
    recent: Vec<LineId>,
    /// For each cycle length from one up: how many lines in a row equalled the line that many lines before.
    matches: Vec<u64>,
}

/// A loop that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loop {
    /// Lines of the cycle; 1 for a single line.
    pub lines: usize,
    /// Characters of the cycle.
    pub chars: u64,
    /// How often it stands in a row.
    pub occurrences: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct LineId {
    hash: u64,
    chars: u64,
}

/// The line being read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    hash: u64,
    chars: u64,
    /// As they were at the last character that is not blank.
    trimmed: LineId,
    only_rule: bool,
    only_closing: bool,
}

impl LineDetector {
    /// A detector at the start of a reply.
    pub fn new(thresholds: &[RepetitionThreshold]) -> Self {
        let mut thresholds = thresholds.to_vec();
        thresholds.sort_by_key(|threshold| std::cmp::Reverse(threshold.min_chars));
        Self { thresholds, line: Line::new(), recent: Vec::new(), matches: vec![0; MAX_CYCLE] }
    }

    /// Takes more text. If one of its lines is a repetition too many: the bytes up to that line's end, and the loop.
    pub fn push(&mut self, text: &str) -> Option<(usize, Loop)> {
        for (at, ch) in text.char_indices() {
            if ch != '\n' {
                self.line.push(ch);
            } else if let Some(found) = self.end_line() {
                return Some((at + 1, found));
            }
        }
        None
    }

    /// Ends the last line.
    pub fn finish(&mut self) -> Option<Loop> {
        self.end_line()
    }

    fn end_line(&mut self) -> Option<Loop> {
        let line = std::mem::replace(&mut self.line, Line::new());
        if line.only_rule || line.only_closing {
            return None;
        }
        for (matches, before) in self.matches.iter_mut().zip(&self.recent) {
            *matches = if *before == line.trimmed { *matches + 1 } else { 0 };
        }
        self.recent.insert(0, line.trimmed);
        self.recent.truncate(MAX_CYCLE);
        (1..=self.recent.len()).find_map(|lines| self.loop_of(lines))
    }

    fn loop_of(&self, lines: usize) -> Option<Loop> {
        let matched = self.matched(lines);
        let occurrences = matched / lines as u64 + 1;
        if occurrences < u64::from(MIN_OCCURRENCES) {
            return None;
        }
        // A cycle that is itself a shorter one repeated is measured as the shorter one.
        let is_shorter = (1..lines).any(|shorter| {
            lines.is_multiple_of(shorter) && self.matched(shorter) >= (lines - shorter) as u64
        });
        if is_shorter {
            return None;
        }
        let chars = self.recent.iter().take(lines).map(|line| line.chars).sum();
        let threshold = self.thresholds.iter().find(|threshold| chars >= threshold.min_chars)?;
        (occurrences >= u64::from(threshold.occurrences.max(MIN_OCCURRENCES))).then_some(Loop {
            lines,
            chars,
            occurrences,
        })
    }

    fn matched(&self, lines: usize) -> u64 {
        lines.checked_sub(1).and_then(|index| self.matches.get(index)).copied().unwrap_or(0)
    }
}

impl Line {
    fn new() -> Self {
        let empty = LineId { hash: 0xcbf2_9ce4_8422_2325, chars: 0 };
        Self { hash: empty.hash, chars: 0, trimmed: empty, only_rule: true, only_closing: true }
    }

    fn push(&mut self, ch: char) {
        // FNV-1a over scalar values: stable over versions, which a stored machine needs.
        self.hash = (self.hash ^ u64::from(u32::from(ch))).wrapping_mul(0x0100_0000_01b3);
        self.chars += 1;
        if ch.is_whitespace() {
            return;
        }
        self.trimmed = LineId { hash: self.hash, chars: self.chars };
        self.only_rule &= matches!(
            ch,
            '-' | '='
                | '_'
                | '*'
                | '+'
                | '|'
                | ':'
                | '#'
                | '~'
                | '`'
                | '>'
                | '•'
                | '–'
                | '—'
                | '·'
                | '─'
                | '│'
                | '┼'
        );
        self.only_closing &= matches!(ch, '}' | ')' | ']' | ',' | ';');
    }
}
