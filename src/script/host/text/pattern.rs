//! Regular expressions, in time that is linear in the text for each match.
//!
//! The syntax is that of the `regex` crate: no backreferences and no look-around, which is what makes it safe to take a
//! pattern from a model. A pattern is bounded by what it compiles to. Texts need not be UTF-8.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::plain::within;

/// Longest pattern, in bytes.
const MAX_PATTERN: usize = 10_000;
/// Most that a pattern compiles to, in bytes; it lies outside the script's memory limit.
const MAX_COMPILED: usize = 512 << 10;
/// Most groups of a pattern, itself included.
const MAX_GROUPS: usize = 100;
/// Patterns that a state keeps compiled.
const MAX_KEPT: usize = 16;

/// The patterns of a state that are compiled.
#[derive(Default)]
pub(super) struct Patterns(RefCell<HashMap<String, Regex>>);

impl Patterns {
    pub(super) fn get(&self, pattern: &str) -> Result<Regex, String> {
        if let Some(kept) = self.0.borrow().get(pattern) {
            return Ok(kept.clone());
        }
        let compiled = compile(pattern)?;
        let mut kept = self.0.borrow_mut();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(pattern.to_owned(), compiled.clone());
        Ok(compiled)
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("the pattern is longer than {MAX_PATTERN} bytes"));
    }
    let compiled = RegexBuilder::new(pattern).size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED).build();
    let compiled = compiled.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            format!("the pattern is too big: it compiles to more than {} KiB", MAX_COMPILED >> 10)
        }
        // Several lines, of which the last says what is wrong.
        error => {
            let error = error.to_string();
            let said = error.lines().last().unwrap_or_default();
            format!("the pattern makes no sense: {}", said.trim_start_matches("error: "))
        }
    })?;
    if compiled.captures_len() > MAX_GROUPS {
        return Err(format!("the pattern has more than {} groups", MAX_GROUPS - 1));
    }
    Ok(compiled)
}

/// What is to be done with the matches in a text.
pub(super) enum Search {
    /// Whether there is one.
    Any,
    /// The first from a byte on, from 0.
    First(usize),
    /// At most so many.
    All(usize),
    /// Replace at most so many.
    Replace(Vec<u8>, usize),
}

/// Where a match and its groups are, in bytes.
pub(super) type Spans = Vec<Option<(usize, usize)>>;

/// What was found.
pub(super) enum Found {
    Any(bool),
    Matches(Vec<Spans>),
    /// The new text, and how many matches were replaced.
    Replaced(Vec<u8>, usize),
}

/// Searches `text`, as long as `go_on` says so between two matches: to find all is quadratic at worst.
pub(super) fn search(
    regex: &Regex,
    text: &[u8],
    search: &Search,
    go_on: &dyn Fn() -> bool,
) -> Result<Found, String> {
    let stopped = || String::from("the call has ended");
    match search {
        Search::Any => Ok(Found::Any(regex.is_match(text))),
        Search::First(from) if *from > text.len() => Ok(Found::Matches(Vec::new())),
        Search::First(from) => Ok(Found::Matches(regex.captures_at(text, *from).iter().map(spans).collect())),
        Search::All(most) => {
            let mut found = Vec::new();
            for captures in regex.captures_iter(text).take(*most) {
                if !go_on() {
                    return Err(stopped());
                }
                found.push(spans(&captures));
            }
            Ok(Found::Matches(found))
        }
        Search::Replace(with, most) => {
            let mut made = Vec::new();
            let (mut from, mut count) = (0, 0);
            for captures in regex.captures_iter(text).take(*most) {
                if !go_on() {
                    return Err(stopped());
                }
                let Some(whole) = captures.get(0) else { continue };
                made.extend_from_slice(text.get(from..whole.start()).unwrap_or_default());
                captures.expand(with, &mut made);
                within(made.len())?;
                from = whole.end();
                count += 1;
            }
            made.extend_from_slice(text.get(from..).unwrap_or_default());
            within(made.len())?;
            Ok(Found::Replaced(made, count))
        }
    }
}

fn spans(captures: &Captures<'_>) -> Spans {
    captures.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect()
}
