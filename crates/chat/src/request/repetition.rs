//! Detection of repeated lines, a sign of a malfunctioning model.
//!
//! In: the text of one reply, in any pieces. Out: the end of the line that reaches a threshold. A line is identified by
//! its length in characters and a hash, without trailing blanks. Memory is constant and time is linear. Only
//! consecutive repetitions count: of one line, or of a cycle of two to eight lines, whose length is the sum of its
//! lines. Lines without content (blanks, rules, bare bullets, closing brackets) are ignored.

use serde::{Deserialize, Serialize};

/// Maximum number of lines in a cycle.
const MAX_CYCLE: usize = 8;

/// Minimum number of repetitions, regardless of the thresholds.
const MIN_OCCURRENCES: u32 = 4;

/// The number of consecutive occurrences that count as a loop, for lines or cycles of a minimum length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepetitionThreshold {
    /// Minimum length of the line or cycle, in characters.
    pub min_chars: u64,
    /// Number of consecutive occurrences that count as a loop; at least four.
    pub occurrences: u32,
}

/// Returns the default thresholds.
pub fn default_thresholds() -> Vec<RepetitionThreshold> {
    [(80, 4), (32, 6), (12, 12), (4, 24), (0, 64)]
        .map(|(min_chars, occurrences)| RepetitionThreshold { min_chars, occurrences })
        .to_vec()
}

/// A detector for repeated lines in one reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineDetector {
    thresholds: Vec<RepetitionThreshold>,
    line: Line,
    /// The last lines, newest first.
    recent: Vec<LineId>,
    /// For each cycle length N, starting at one: the number of consecutive lines that equal the line N lines before.
    matches: Vec<u64>,
}

/// A detected loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loop {
    /// Number of lines in the cycle; 1 for a single line.
    pub lines: usize,
    /// Length of the cycle in characters.
    pub chars: u64,
    /// Number of consecutive occurrences.
    pub occurrences: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct LineId {
    hash: u64,
    chars: u64,
}

/// The line that is being read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    hash: u64,
    chars: u64,
    /// The id up to the last non-blank character.
    trimmed: LineId,
    only_rule: bool,
    only_closing: bool,
}

impl LineDetector {
    /// Creates a detector for a new reply.
    pub fn new(thresholds: &[RepetitionThreshold]) -> Self {
        let mut thresholds = thresholds.to_vec();
        thresholds.sort_by_key(|threshold| std::cmp::Reverse(threshold.min_chars));
        Self { thresholds, line: Line::new(), recent: Vec::new(), matches: vec![0; MAX_CYCLE] }
    }

    /// Takes more text. If a line completes a loop, returns the end of that line in bytes, and the loop.
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
        // A cycle that repeats a shorter cycle is counted as the shorter cycle.
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
        // FNV-1a over scalar values. The hash must not change between versions, because it is serialised.
        self.hash = (self.hash ^ u64::from(u32::from(ch))).wrapping_mul(0x0100_0000_01b3);
        self.chars += 1;
        if ch.is_whitespace() {
            return;
        }
        self.trimmed = LineId { hash: self.hash, chars: self.chars };
        self.only_rule = self.only_rule && is_rule(ch);
        self.only_closing = self.only_closing && matches!(ch, '}' | ')' | ']' | ',' | ';');
    }
}

/// Whether a character is used for rules, bullets and tables.
fn is_rule(ch: char) -> bool {
    "-=_*+|:#~`>•–—·─│┼".contains(ch)
}
