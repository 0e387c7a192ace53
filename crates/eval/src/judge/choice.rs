//! The tools that a model confuses.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

/// An expected tool, and the tool that was called instead of it or as expected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Choice {
    /// The expected tool; `None` if no call was expected.
    pub expected: Option<String>,
    /// The called tool; `None` if there was no call.
    pub called: Option<String>,
}

impl Choice {
    /// Creates a choice.
    pub fn new(expected: Option<&str>, called: Option<&str>) -> Self {
        Self { expected: expected.map(str::to_owned), called: called.map(str::to_owned) }
    }

    /// Returns whether the expected tool was called.
    pub fn is_right(&self) -> bool {
        self.expected == self.called
    }
}

/// A row of the table of confusion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Confusion {
    /// The expected and the called tool.
    #[serde(flatten)]
    pub choice: Choice,
    /// How often.
    pub count: usize,
}

/// Counts equal choices. The wrong ones come first, and the most frequent of them first.
pub fn confusions(choices: impl IntoIterator<Item = Choice>) -> Vec<Confusion> {
    let mut counts: BTreeMap<Choice, usize> = BTreeMap::new();
    for choice in choices {
        *counts.entry(choice).or_default() += 1;
    }
    let mut rows: Vec<Confusion> =
        counts.into_iter().map(|(choice, count)| Confusion { choice, count }).collect();
    rows.sort_by_key(|row| (row.choice.is_right(), Reverse(row.count)));
    rows
}
