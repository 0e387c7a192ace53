//! Regular expressions that end: what a pattern and a text cost is bounded before or while they are searched.
//!
//! The syntax has no backreferences and no look-around, so that a match takes linear time. Linear is not enough where a
//! model writes the pattern: `[01]*1[01]{9999}` costs ten thousand steps a byte. Texts are therefore searched by a lazy
//! automaton that gives up when it has to build too much of itself, which a harmless pattern never makes it do; where it
//! cannot be used (a Unicode `\b` beside letters beyond ASCII) or has given up, a slow search follows for small texts
//! only, and an error else. Texts need not be UTF-8.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use regex_automata::hybrid::{dfa, regex as lazy};
use regex_automata::meta;
use regex_automata::nfa::thompson;
use regex_automata::util::captures::Captures;
use regex_automata::util::iter::Searcher;
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, Match, PatternID};

use super::plain::within;

/// Longest pattern, in bytes. It is compiled on the script's thread, where nothing stops it: a class that is folded costs
/// some 0.1 ms a byte.
const MAX_PATTERN: usize = 2_000;
/// Most that a pattern compiles to, in bytes, several times; it lies outside the script's memory limit.
const MAX_COMPILED: usize = 1 << 20;
/// Most groups of a pattern, itself included.
const MAX_GROUPS: usize = 100;
/// Patterns that a state keeps compiled.
const MAX_KEPT: usize = 8;
/// Memory of an automaton, in bytes, and how often it may be full before it gives up, unless it reads so many bytes for
/// each of its states.
const CACHE: usize = 2 << 20;
const MOST_CLEARS: usize = 10;
const USUAL_READ: usize = 1_000;
/// Most steps of a slow search: bytes by what the pattern compiles to. A step takes some 10 ns.
const MOST_STEPS: usize = 1 << 28;

/// A pattern, ready to search.
pub(super) struct Pattern {
    /// Finds where matches are.
    lazy: lazy::Regex,
    /// Finds what their groups are, and matches where the other cannot.
    full: meta::Regex,
    /// How many places of the pattern a slow search may be in at a time.
    states: usize,
}

/// The patterns of a state that are compiled.
#[derive(Default)]
pub(super) struct Patterns(RefCell<HashMap<String, Arc<Pattern>>>);

impl Patterns {
    pub(super) fn get(&self, pattern: &str) -> Result<Arc<Pattern>, String> {
        if let Some(kept) = self.0.borrow().get(pattern) {
            return Ok(Arc::clone(kept));
        }
        let compiled = Arc::new(Pattern::new(pattern)?);
        let mut kept = self.0.borrow_mut();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(pattern.to_owned(), Arc::clone(&compiled));
        Ok(compiled)
    }
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

impl Pattern {
    fn new(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN {
            return Err(format!("the pattern is longer than {MAX_PATTERN} bytes"));
        }
        let syntax = syntax::Config::new().utf8(false);
        let bounded = meta::Config::new()
            .utf8_empty(false)
            .nfa_size_limit(Some(MAX_COMPILED))
            .onepass_size_limit(Some(MAX_COMPILED))
            .hybrid_cache_capacity(CACHE);
        let full = meta::Builder::new().syntax(syntax).configure(bounded).build(pattern);
        let full = full.map_err(|error| match error.syntax_error() {
            // Several lines, of which the last says what is wrong.
            Some(error) => {
                let error = error.to_string();
                let said = error.lines().last().unwrap_or_default();
                format!("the pattern makes no sense: {}", said.trim_start_matches("error: "))
            }
            None => too_big(),
        })?;
        if full.captures_len() > MAX_GROUPS {
            return Err(format!("the pattern has more than {} groups", MAX_GROUPS - 1));
        }
        let lazy = lazy::Builder::new()
            .syntax(syntax)
            .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(MAX_COMPILED)))
            .dfa(
                dfa::Config::new()
                    .unicode_word_boundary(true)
                    .cache_capacity(CACHE)
                    .skip_cache_capacity_check(true)
                    .minimum_cache_clear_count(Some(MOST_CLEARS))
                    .minimum_bytes_per_state(Some(USUAL_READ)),
            )
            .build(pattern)
            .map_err(|_| too_big())?;
        let states = lazy.forward().get_nfa().states().len();
        Ok(Self { lazy, full, states })
    }

    /// The names of the groups, in order; that of the whole match is nothing.
    pub(super) fn group_names(&self) -> impl Iterator<Item = Option<&str>> {
        self.full.group_info().pattern_names(PatternID::ZERO)
    }

    /// How many steps a slow search of `length` bytes takes at most.
    pub(super) fn steps(&self, length: usize) -> usize {
        self.states.saturating_mul(length)
    }

    /// Searches `text`, as long as `go_on` says so between two matches: to find all is quadratic at worst.
    pub(super) fn search(
        &self,
        text: &[u8],
        search: &Search,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Found, String> {
        let from = if let Search::First(from) = search { *from } else { 0 };
        if from > text.len() {
            return Ok(Found::Matches(Vec::new()));
        }
        let mut cache = self.lazy.create_cache();
        let mut searcher = Searcher::new(Input::new(text).range(from..));
        let mut next = || {
            if !go_on() {
                return Err(String::from("the call has ended"));
            }
            let found = searcher.try_advance(|input| match self.lazy.try_search(&mut cache, input) {
                Err(_) if self.steps(input.get_span().len()) <= MOST_STEPS => Ok(self.full.search(input)),
                other => other,
            });
            found.map_err(|_| self.too_costly())
        };
        match search {
            Search::Any => Ok(Found::Any(next()?.is_some())),
            Search::First(_) => {
                let found = next()?.map(|found| self.groups(text, found)).transpose()?;
                Ok(Found::Matches(found.iter().map(spans).collect()))
            }
            Search::All(most) => {
                let mut matches = Vec::new();
                while matches.len() < *most
                    && let Some(found) = next()?
                {
                    matches.push(spans(&self.groups(text, found)?));
                }
                Ok(Found::Matches(matches))
            }
            Search::Replace(with, most) => {
                let mut made = Vec::new();
                let (mut from, mut count) = (0, 0);
                while count < *most
                    && let Some(found) = next()?
                {
                    made.extend_from_slice(text.get(from..found.start()).unwrap_or_default());
                    self.groups(text, found)?.interpolate_bytes_into(text, with, &mut made);
                    within(made.len())?;
                    from = found.end();
                    count += 1;
                }
                made.extend_from_slice(text.get(from..).unwrap_or_default());
                within(made.len())?;
                Ok(Found::Replaced(made, count))
            }
        }
    }

    /// What the groups of the match `found` are.
    fn groups(&self, text: &[u8], found: Match) -> Result<Captures, String> {
        if self.full.captures_len() == 1 {
            let mut whole = Captures::matches(self.full.group_info().clone());
            whole.set_pattern(Some(PatternID::ZERO));
            for (slot, at) in whole.slots_mut().iter_mut().zip([found.start(), found.end()]) {
                *slot = NonMaxUsize::new(at);
            }
            return Ok(whole);
        }
        if self.steps(found.len()) > MOST_STEPS {
            return Err(format!(
                "a match of {} KiB is too long for the groups of this pattern; leave them out or search a shorter text",
                found.len() >> 10
            ));
        }
        let mut groups = self.full.create_captures();
        let input = Input::new(text).range(found.range()).anchored(Anchored::Yes);
        self.full.search_captures(&input, &mut groups);
        Ok(groups)
    }

    fn too_costly(&self) -> String {
        let most = MOST_STEPS / self.states.max(1);
        format!(
            "the pattern is too costly for a text of more than {} KiB; simplify it (large counts, Unicode \\b, which (?-u:\\b) \
             replaces) or search the text in pieces",
            (most >> 10).max(1)
        )
    }
}

fn too_big() -> String {
    format!("the pattern is too big: it compiles to more than {} KiB", MAX_COMPILED >> 10)
}

fn spans(captures: &Captures) -> Spans {
    captures.iter().map(|group| group.map(|group| (group.start, group.end))).collect()
}

/// The pattern that matches just `text`.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pattern: &str, text: &str) -> Result<Vec<String>, String> {
        match Pattern::new(pattern)?.search(text.as_bytes(), &Search::All(100), &|| true)? {
            Found::Matches(matches) => Ok(matches
                .iter()
                .map(|spans| {
                    let parts = spans.iter().map(|span| span.map_or("-", |(from, to)| &text[from..to]));
                    parts.collect::<Vec<_>>().join(",")
                })
                .collect()),
            Found::Any(_) | Found::Replaced(..) => panic!("no matches"),
        }
    }

    #[test]
    fn matches_and_their_groups_are_found() {
        for (pattern, text, found) in [
            ("a", "banana", &["a", "a", "a"][..]),
            ("", "ab", &["", "", ""]),
            ("x*", "axxb", &["", "xx", ""]),
            (r"(\w)(?:=(\d))?", "a=1 b", &["a=1,a,1", "b,b,-"]),
            (r"(?m)^(\w+)$", "one\ntwo\n", &["one,one", "two,two"]),
            // The lazy automaton cannot tell Unicode's words: the slow search can, in a small text.
            (r"\bé\w*\b", "un été, d'été", &["été", "été"]),
            (r"\b(\w)\w*\b", "naïve 漢字", &["naïve,n", "漢字,漢"]),
            (r"(a|ab)(c|bcd)?", "abcd", &["abcd,a,bcd"]),
            ("é", "été", &["é", "é"]),
        ] {
            assert_eq!(
                all(pattern, text),
                Ok(found.iter().map(|one| String::from(*one)).collect()),
                "{pattern}"
            );
        }
    }

    /// Ordinary patterns search megabytes; what would cost thousands of steps a byte is told from them.
    #[test]
    fn only_costly_patterns_are_refused() {
        let random = |letters: &[u8]| {
            let mut rng = fastrand::Rng::with_seed(1);
            (0..1 << 18).map(|_| letters[rng.usize(..letters.len())] as char).collect::<String>()
        };
        let words = random(b"abcdefgh ,.;\n_01");
        for pattern in [
            r"(?i)\btodo\b",
            r"\w+@\w+",
            r"\b\w{3,20}Z\b",
            r"(?m)^\s*fn\s+(\w+)",
            "(a*)*Z",
            r"\p{L}+\s\p{L}+Z",
        ] {
            assert_eq!(all(pattern, &words), Ok(Vec::new()), "{pattern}");
        }
        let bits = random(b"01");
        let refused = all("[01]*1[01]{3000}x", &bits).unwrap_err();
        assert!(refused.contains("too costly"), "{refused}");
        let letters = format!("{}é", random(b"ab"));
        let refused = all(r"\b\w{20}c\b", &letters).unwrap_err();
        assert!(refused.contains("too costly") && refused.contains("(?-u:\\b)"), "{refused}");
    }

    #[test]
    fn an_escaped_text_matches_itself() {
        for text in ["a.b", r"\d+[x]{2}(a|b)^$?*", "# a-b & ~c", "<é_漢>%\"'!@/`:;=,"] {
            assert_eq!(all(&escape(text), &format!("-{text}-")), Ok(vec![text.to_owned()]), "{text}");
        }
    }
}
