//! Regular expressions with bounded cost.
//!
//! The syntax has no backreferences and no look-around, so a match takes linear time. This is not sufficient for
//! patterns from a model: `[01]*1[01]{9999}` takes ten thousand steps for each byte. Therefore texts are searched with
//! a lazy DFA that gives up when it has to build too many states, which does not happen for ordinary patterns. If it
//! gives up or cannot be used (a Unicode `\b` in a text with non-ASCII letters), small texts are searched with a slower
//! engine; for larger texts the search fails. Texts need not be UTF-8.

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

use super::plain::check_length;

/// Maximum length of a pattern, in bytes. Patterns are compiled on the script's thread, where compilation cannot be
/// stopped. A case-insensitive class takes about 0.1 ms for each byte.
const MAX_PATTERN: usize = 2_000;
/// Maximum size of each compiled form of a pattern, in bytes. It is outside of the script's memory limit.
const MAX_COMPILED: usize = 1 << 20;
/// Maximum number of groups of a pattern, including the implicit group of the whole match.
const MAX_GROUPS: usize = 100;
/// Maximum number of compiled patterns that a Lua state caches.
const MAX_CACHED: usize = 8;
/// The cache size of a lazy DFA in bytes, and the number of cache clears after which it gives up, unless it has read at
/// least [`MIN_BYTES_PER_STATE`] bytes for each state.
const CACHE_CAPACITY: usize = 2 << 20;
const MAX_CACHE_CLEARS: usize = 10;
const MIN_BYTES_PER_STATE: usize = 1_000;
/// Maximum number of steps of a slow search: bytes times NFA states. A step takes about 10 ns.
const MAX_STEPS: usize = 1 << 28;

/// A compiled pattern.
pub(super) struct Pattern {
    /// Finds matches.
    lazy: lazy::Regex,
    /// Finds the groups of a match, and matches where the lazy DFA fails.
    full: meta::Regex,
    /// Number of NFA states: the maximum number that a slow search visits for each byte.
    states: usize,
}

/// The compiled patterns of a Lua state.
#[derive(Default)]
pub(super) struct PatternCache(RefCell<HashMap<String, Arc<Pattern>>>);

impl PatternCache {
    pub(super) fn get(&self, pattern: &str) -> Result<Arc<Pattern>, String> {
        if let Some(cached) = self.0.borrow().get(pattern) {
            return Ok(Arc::clone(cached));
        }
        let compiled = Arc::new(Pattern::new(pattern)?);
        let mut cached = self.0.borrow_mut();
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        cached.insert(pattern.to_owned(), Arc::clone(&compiled));
        Ok(compiled)
    }
}

/// The kind of a search.
pub(super) enum Search {
    /// Returns whether there is a match.
    Any,
    /// Returns the first match at or after a byte offset, from 0.
    First(usize),
    /// Returns up to this number of matches.
    All(usize),
    /// Replaces up to this number of matches.
    Replace(Vec<u8>, usize),
}

/// The byte ranges of a match and its groups.
pub(super) type Spans = Vec<Option<(usize, usize)>>;

/// The result of a search.
pub(super) enum SearchResult {
    Any(bool),
    Matches(Vec<Spans>),
    /// The new text and the number of replaced matches.
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
            .hybrid_cache_capacity(CACHE_CAPACITY);
        let full = meta::Builder::new().syntax(syntax).configure(bounded).build(pattern);
        let full = full.map_err(|error| match error.syntax_error() {
            // The message has several lines. The last one is the reason.
            Some(error) => {
                let error = error.to_string();
                let message = error.lines().last().unwrap_or_default();
                format!("invalid pattern: {}", message.trim_start_matches("error: "))
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
                    .cache_capacity(CACHE_CAPACITY)
                    .skip_cache_capacity_check(true)
                    .minimum_cache_clear_count(Some(MAX_CACHE_CLEARS))
                    .minimum_bytes_per_state(Some(MIN_BYTES_PER_STATE)),
            )
            .build(pattern)
            .map_err(|_| too_big())?;
        let states = lazy.forward().get_nfa().states().len();
        Ok(Self { lazy, full, states })
    }

    /// Returns the names of the groups, in order. The whole match has no name.
    pub(super) fn group_names(&self) -> impl Iterator<Item = Option<&str>> {
        self.full.group_info().pattern_names(PatternID::ZERO)
    }

    /// Returns the maximum number of steps of a slow search of `length` bytes.
    pub(super) fn steps(&self, length: usize) -> usize {
        self.states.saturating_mul(length)
    }

    /// Searches `text`. Calls `should_continue` before each match, because finding all matches takes quadratic time in
    /// the worst case.
    pub(super) fn search(
        &self,
        text: &[u8],
        search: &Search,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<SearchResult, String> {
        let from = if let Search::First(from) = search { *from } else { 0 };
        if from > text.len() {
            return Ok(SearchResult::Matches(Vec::new()));
        }
        let mut cache = self.lazy.create_cache();
        let mut searcher = Searcher::new(Input::new(text).range(from..));
        let mut next = || {
            if !should_continue() {
                return Err(String::from("the call has ended"));
            }
            let found = searcher.try_advance(|input| match self.lazy.try_search(&mut cache, input) {
                Err(_) if self.steps(input.get_span().len()) <= MAX_STEPS => Ok(self.full.search(input)),
                other => other,
            });
            found.map_err(|_| self.too_costly())
        };
        match search {
            Search::Any => Ok(SearchResult::Any(next()?.is_some())),
            Search::First(_) => {
                let found = next()?.map(|found| self.groups(text, found)).transpose()?;
                Ok(SearchResult::Matches(found.iter().map(spans).collect()))
            }
            Search::All(limit) => {
                let mut matches = Vec::new();
                while matches.len() < *limit
                    && let Some(found) = next()?
                {
                    matches.push(spans(&self.groups(text, found)?));
                }
                Ok(SearchResult::Matches(matches))
            }
            Search::Replace(with, limit) => {
                let mut result = Vec::new();
                let (mut from, mut count) = (0, 0);
                while count < *limit
                    && let Some(found) = next()?
                {
                    result.extend_from_slice(text.get(from..found.start()).unwrap_or_default());
                    self.groups(text, found)?.interpolate_bytes_into(text, with, &mut result);
                    check_length(result.len())?;
                    from = found.end();
                    count += 1;
                }
                result.extend_from_slice(text.get(from..).unwrap_or_default());
                check_length(result.len())?;
                Ok(SearchResult::Replaced(result, count))
            }
        }
    }

    /// Returns the groups of the match `found`.
    fn groups(&self, text: &[u8], found: Match) -> Result<Captures, String> {
        if self.full.captures_len() == 1 {
            let mut whole = Captures::matches(self.full.group_info().clone());
            whole.set_pattern(Some(PatternID::ZERO));
            for (slot, at) in whole.slots_mut().iter_mut().zip([found.start(), found.end()]) {
                *slot = NonMaxUsize::new(at);
            }
            return Ok(whole);
        }
        if self.steps(found.len()) > MAX_STEPS {
            return Err(format!(
                "a match of {} KiB is too long for the groups of this pattern; remove the groups or search a shorter text",
                found.len() >> 10
            ));
        }
        let mut groups = self.full.create_captures();
        let input = Input::new(text).range(found.range()).anchored(Anchored::Yes);
        self.full.search_captures(&input, &mut groups);
        Ok(groups)
    }

    fn too_costly(&self) -> String {
        let limit = MAX_STEPS / self.states.max(1);
        format!(
            "the pattern is too costly for a text of more than {} KiB; simplify it (avoid large counts, use (?-u:\\b) instead \
             of \\b) or search the text in pieces",
            (limit >> 10).max(1)
        )
    }
}

fn too_big() -> String {
    format!("the pattern is too big: it compiles to more than {} KiB", MAX_COMPILED >> 10)
}

fn spans(captures: &Captures) -> Spans {
    captures.iter().map(|group| group.map(|group| (group.start, group.end))).collect()
}

/// Returns a pattern that matches exactly `text`.
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
            SearchResult::Matches(matches) => Ok(matches
                .iter()
                .map(|spans| {
                    let parts = spans.iter().map(|span| span.map_or("-", |(from, to)| &text[from..to]));
                    parts.collect::<Vec<_>>().join(",")
                })
                .collect()),
            SearchResult::Any(_) | SearchResult::Replaced(..) => panic!("no matches"),
        }
    }

    #[test]
    fn matches_and_groups_are_found() {
        for (pattern, text, found) in [
            ("a", "banana", &["a", "a", "a"][..]),
            ("", "ab", &["", "", ""]),
            ("x*", "axxb", &["", "xx", ""]),
            (r"(\w)(?:=(\d))?", "a=1 b", &["a=1,a,1", "b,b,-"]),
            (r"(?m)^(\w+)$", "one\ntwo\n", &["one,one", "two,two"]),
            // The lazy DFA does not support Unicode word boundaries; the slow search does, in a small text.
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

    /// Ordinary patterns can search megabytes. Patterns that take thousands of steps for each byte are rejected.
    #[test]
    fn only_costly_patterns_are_rejected() {
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
