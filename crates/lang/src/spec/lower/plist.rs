//! Plists: `:key value :key value …`.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer as _};

use super::lowerer::Lowerer;
use crate::diagnostic::Severity;
use crate::spec::reference::{self, Key, Plist};
use crate::spec::units::{parse_bytes, parse_duration};
use crate::spec::{keywords, nearest, rules};
use crate::syntax::{Datum, DatumKind, Number};
use crate::text::{Span, Spanned};

/// A key with its value.
pub(super) struct Entry {
    /// The key without its leading colon.
    pub(super) key: String,
    pub(super) key_span: Span,
    /// [`DatumKind::Invalid`] if the value is missing or not a constant, which has been reported.
    pub(super) value: Datum,
}

/// Keywords that are values, never keys.
const CONSTANT_KEYWORDS: [&str; 4] = [":json-false", ":false", ":null", ":json-null"];

/// Whether the item may be intended as a key.
fn is_key(datum: &Datum, known: &[Key]) -> bool {
    match &datum.kind {
        DatumKind::Keyword(word) => !CONSTANT_KEYWORDS.contains(&word.as_str()),
        DatumKind::Symbol(word) | DatumKind::String(word) => is_known(word, known),
        _ => false,
    }
}

/// Whether `word` is one of `known`, with or without its colon.
fn is_known(word: &str, known: &[Key]) -> bool {
    let word = word.strip_prefix(':').unwrap_or(word);
    known.iter().any(|key| key.name == word)
}

/// Whether the item is a keyword, but not a known key.
fn is_lone_word(datum: &Datum, known: &[Key]) -> bool {
    matches!(&datum.kind, DatumKind::Keyword(word) if !is_known(word, known) && !word.ends_with(':'))
}

/// Whether gptel sends a schema keyword correctly without its colon. The keywords that gptel looks up need the colon.
fn is_sent_bare(word: &str) -> bool {
    !matches!(word, "name" | "optional" | "type") && !keywords::value_kind(word).holds_schemas()
}

/// Up to this number of keys, a linear search is used.
const FEW: usize = 16;

/// The entries of a plist that is being read.
#[derive(Default)]
struct Entries {
    all: Vec<Entry>,
    /// Index of each key, if there are more than [`FEW`].
    indices: HashMap<String, usize>,
}

impl Entries {
    fn index_of(&self, key: &str) -> Option<usize> {
        if self.all.len() <= FEW {
            self.all.iter().position(|entry| entry.key == key)
        } else {
            self.indices.get(key).copied()
        }
    }

    fn push(&mut self, entry: Entry) {
        self.all.push(entry);
        if self.all.len() > FEW {
            let known = self.indices.len();
            let new = self.all.iter().enumerate().skip(known);
            self.indices.extend(new.map(|(index, entry)| (entry.key.clone(), index)));
        }
    }
}

/// Keys that a fix would rename. If two keys would become equal, the intended one is unknown.
#[derive(Default)]
struct RenamedKeys {
    /// Intended keys, each with the index of its finding.
    keys: Vec<(String, usize)>,
    /// Keys with a stray colon, without the colon, each with the index of its finding.
    stray: Vec<(String, usize)>,
    /// Keys that occur more than once.
    doubled: HashSet<String>,
}

impl Lowerer {
    /// Reads the entries of a plist, without duplicates. The caller reports unknown keys.
    pub(super) fn read_plist(&mut self, items: Vec<Datum>, plist: Plist) -> Vec<Entry> {
        self.read_entries(items, reference::keys(plist), plist == Plist::Argument)
    }

    /// Reads the entries of a plist that may have any keys, without duplicates.
    pub(super) fn read_members(&mut self, items: Vec<Datum>) -> Vec<Entry> {
        self.read_entries(items, &[], false)
    }

    /// `known` are the allowed keys; if it is empty, any key is allowed. `takes_bare_keys`: whether Emacs accepts keys
    /// without a colon.
    fn read_entries(&mut self, items: Vec<Datum>, known: &[Key], takes_bare_keys: bool) -> Vec<Entry> {
        let mut entries = Entries { all: Vec::with_capacity(items.len() / 2), ..Entries::default() };
        let mut renamed = RenamedKeys::default();
        let mut items = items.into_iter().peekable();
        let mut end_of_string = None;
        let mut colon: Option<usize> = None;
        let mut pending = None;
        while let Some(item) = pending.take().or_else(|| items.next()) {
            let at = self.at(item.span);
            let key = match item.kind {
                DatumKind::Keyword(mut key) => {
                    if key.starts_with(':') {
                        key.remove(0);
                    }
                    key
                }
                DatumKind::Symbol(word) if known.iter().any(|key| key.name == word) => {
                    renamed.keys.push((word.clone(), self.findings.len()));
                    let is_sent = takes_bare_keys && is_sent_bare(&word);
                    self.findings.push(rules::bare_key::symbol(at, &word, is_sent));
                    word
                }
                // Without a value after it, the string is a value itself: `:required "name" "type"`.
                DatumKind::String(word)
                    if is_known(&word, known)
                        && items.peek().is_some_and(|next| !matches!(next.kind, DatumKind::Keyword(_))) =>
                {
                    let key = word.strip_prefix(':').unwrap_or(&word).to_owned();
                    renamed.keys.push((key.clone(), self.findings.len()));
                    self.findings.push(rules::bare_key::string(at, &key));
                    key
                }
                kind => {
                    let found = Datum { span: item.span, kind };
                    // Code in the position of a key has been reported.
                    if found.kind != DatumKind::Invalid {
                        let touches = end_of_string == Some(item.span.start);
                        self.findings.push(rules::stray_value::finding(at, found.describe(), touches));
                    }
                    // Everything up to the next key is one mistake.
                    while items.next_if(|next| !is_key(next, known)).is_some() {}
                    continue;
                }
            };
            let value = items.next_if(|next| {
                !matches!(&next.kind, DatumKind::Keyword(word) if !CONSTANT_KEYWORDS.contains(&word.as_str()))
            });
            let value = value.or_else(|| {
                // `:type :string`: an unknown keyword without a value of its own.
                let known_key = known.iter().find(|known| known.name == key)?;
                let word = items.next_if(|next| is_lone_word(next, known))?;
                if items.peek().is_some_and(|next| !is_key(next, known)) {
                    // The keyword has a value: it is a key, and the previous key has no value.
                    pending = Some(word);
                    return None;
                }
                Some(self.keyword_as_value(known_key, word))
            });
            let value = value.unwrap_or_else(|| {
                self.findings.push(rules::odd_plist::finding(at, &key));
                Datum { span: item.span, kind: DatumKind::Invalid }
            });
            end_of_string = matches!(value.kind, DatumKind::String(_)).then_some(value.span.end);
            // A property may have any name.
            let mut key = key;
            if key.len() > 1 && key.ends_with(':') && !known.is_empty() {
                let mut finding = rules::stray_colon::finding(at, &key, takes_bare_keys);
                let stem = key.trim_end_matches(':').to_owned();
                let names = stem == "name"
                    && known.iter().any(|key| key.name == "name")
                    && entries.index_of("name").is_none();
                if names {
                    // A tool or argument without a name cannot be sent.
                    finding.severity = Severity::Error;
                    key.clone_from(&stem);
                }
                let index = *colon.get_or_insert(self.findings.len());
                match self.findings.get_mut(index) {
                    Some(first) => rules::stray_colon::merge(first, finding),
                    None => self.findings.push(finding),
                }
                if !names {
                    renamed.stray.push((stem, index));
                }
            }
            let first = entries.index_of(&key).and_then(|index| entries.all.get_mut(index));
            let Some(first) = first else {
                entries.push(Entry { key, key_span: item.span, value });
                continue;
            };
            if first.value.kind == DatumKind::Invalid {
                // The first occurrence had no value, which has been reported.
                first.value = value;
            } else {
                self.findings.push(rules::duplicate::finding(
                    at,
                    &format!("key `:{key}`; the first one is used"),
                    first.key_span,
                ));
            }
            renamed.doubled.insert(key);
        }
        self.drop_conflicting_fixes(&entries, renamed);
        entries.all
    }

    /// Drops the fixes that would make two keys equal.
    fn drop_conflicting_fixes(&mut self, entries: &Entries, renamed: RenamedKeys) {
        let RenamedKeys { keys, stray, doubled } = renamed;
        let mut taken = HashSet::new();
        let of_keys = keys.into_iter().filter(|(key, _)| doubled.contains(key)).map(|(_, finding)| finding);
        let of_stray = stray.into_iter().filter_map(|(stem, finding)| {
            let is_there = entries.index_of(&stem).is_some() || !taken.insert(stem);
            is_there.then_some(finding)
        });
        for index in of_keys.chain(of_stray) {
            if let Some(finding) = self.findings.get_mut(index) {
                rules::report_conflict(finding);
            }
        }
    }

    /// Reports a keyword in the position of a value. The rule for `:required` reports `:required :true`.
    fn keyword_as_value(&mut self, key: &Key, word: Datum) -> Datum {
        let DatumKind::Keyword(name) = &word.kind else { return word };
        // These keys have their own findings: Emacs treats any `:optional` but nil as true.
        if matches!(key.name, "required" | "optional") {
            return word;
        }
        self.findings.push(rules::wrong_value::keyword(self.at(word.span), key, name));
        Datum { span: word.span, kind: DatumKind::Invalid }
    }

    /// Reports that the form at `span` has no name.
    pub(super) fn report_missing_name(&mut self, plist: Plist, span: Span) {
        let head = self.at(Span::new(span.start as usize, span.start as usize + 1));
        self.findings.push(rules::missing_key::finding(head, plist, "name"));
    }

    /// Reports an unknown key of `plist`.
    pub(super) fn report_unknown_key(&mut self, plist: Plist, key: &str, key_span: Span) {
        // A stray colon has been reported.
        if !key.ends_with(':') {
            self.findings.push(rules::unknown_key::finding(self.at(key_span), plist, key));
        }
    }

    /// Reports a value of the wrong kind.
    pub(super) fn report_wrong_value(&mut self, key: &str, value: &Datum, expected: &str) {
        if value.kind != DatumKind::Invalid {
            let at = self.at(value.span);
            self.findings.push(rules::wrong_value::finding(at, key, expected, value.describe()));
        }
    }

    /// Reports a number or word that `key` does not take.
    pub(super) fn report_wrong_word(&mut self, key: &str, span: Span, expected: &str, word: impl Display) {
        self.findings.push(rules::wrong_value::finding(self.at(span), key, expected, &format!("`{word}`")));
    }

    /// Reads the items of a plist such as `example`.
    pub(super) fn take_plist(&mut self, key: &str, value: Datum, example: &str) -> Option<Vec<Datum>> {
        let DatumKind::List(items) = value.kind else {
            self.report_wrong_value(key, &value, &format!("a plist such as `{example}`"));
            return None;
        };
        Some(items)
    }

    /// Reads the elements of a vector or list.
    pub(super) fn take_elements(&mut self, key: &str, value: Datum, expected: &str) -> Option<Vec<Datum>> {
        let (DatumKind::Vector(items) | DatumKind::List(items)) = value.kind else {
            self.report_wrong_value(key, &value, expected);
            return None;
        };
        Some(items)
    }

    /// Reads the elements of a vector or list that may not be empty.
    pub(super) fn take_some_elements(
        &mut self,
        key: &str,
        value: Datum,
        expected: &str,
    ) -> Option<Vec<Datum>> {
        let at = self.at(value.span);
        let items = self.take_elements(key, value, expected)?;
        if items.is_empty() {
            self.findings.push(rules::wrong_value::finding(at, key, expected, "an empty vector"));
            return None;
        }
        Some(items)
    }

    /// Reads an integer in `range`.
    pub(super) fn take_integer(
        &mut self,
        key: &str,
        value: &Datum,
        expected: &str,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        match value.kind {
            DatumKind::Number(Number::Integer(number)) if range.contains(&number) => return Some(number),
            DatumKind::Number(Number::Integer(number)) => {
                self.report_wrong_word(key, value.span, expected, number);
            }
            _ => self.report_wrong_value(key, value, expected),
        }
        None
    }

    pub(super) fn take_duration(&mut self, key: &str, value: Datum) -> Option<Duration> {
        self.take_parsed(key, value, "a duration such as \"5s\" or \"500ms\"", parse_duration)
    }

    pub(super) fn take_size(&mut self, key: &str, value: Datum) -> Option<u64> {
        self.take_parsed(key, value, "a size such as \"64KiB\"", parse_bytes)
    }

    pub(super) fn take_string(&mut self, key: &str, value: Datum) -> Option<String> {
        let DatumKind::String(text) = value.kind else {
            self.report_wrong_value(key, &value, "a string");
            return None;
        };
        Some(text)
    }

    /// Reads a path.
    pub(super) fn take_path(&mut self, key: &str, value: Datum) -> Option<Spanned<String>> {
        let span = value.span;
        let path = Spanned::new(self.take_string(key, value)?, span);
        let finding = rules::path_start::check(self.at(span), &path);
        self.findings.extend(finding);
        Some(path)
    }

    /// Reads a flag: `t` is true, `nil` and `:json-false` are false.
    pub(super) fn take_flag(&mut self, key: &str, value: &Datum) -> bool {
        match &value.kind {
            DatumKind::Symbol(word) if word == "t" => true,
            DatumKind::List(items) if items.is_empty() => false,
            DatumKind::Keyword(word) if word == ":json-false" || word == ":false" => false,
            _ => {
                self.report_wrong_value(key, value, "t or nil");
                false
            }
        }
    }

    /// Reads one of the words that the key `key` of `plist` takes, as a symbol or a string.
    pub(super) fn take_word<T: DeserializeOwned>(
        &mut self,
        plist: Plist,
        key: &str,
        value: Datum,
    ) -> Option<T> {
        let words = reference::words(plist, key);
        let (DatumKind::String(text) | DatumKind::Symbol(text)) = &value.kind else {
            self.report_wrong_value(key, &value, &one_of(words));
            return None;
        };
        if words.contains(&text.as_str()) {
            let word: StrDeserializer<'_, serde::de::value::Error> = text.as_str().into_deserializer();
            return T::deserialize(word).ok();
        }
        let found = format!("`{text}`");
        let finding = rules::wrong_value::finding(self.at(value.span), key, &one_of(words), &found);
        self.findings.push(match nearest(text, words.iter().copied()) {
            Some(meant) => finding.did_you_mean(value.span, meant),
            None => finding,
        });
        None
    }

    /// Reads a string or symbol with `parse`.
    pub(super) fn take_parsed<T>(
        &mut self,
        key: &str,
        value: Datum,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let (DatumKind::String(text) | DatumKind::Symbol(text)) = &value.kind else {
            self.report_wrong_value(key, &value, expected);
            return None;
        };
        let parsed = parse(text);
        if parsed.is_none() {
            self.report_wrong_word(key, value.span, expected, text);
        }
        parsed
    }

    /// Reads a vector or list of strings with their spans, without duplicates.
    pub(super) fn take_strings(&mut self, key: &str, value: Datum) -> Option<Vec<Spanned<String>>> {
        let items = self.take_elements(key, value, "a vector of strings")?;
        let mut strings = Vec::new();
        let mut seen: HashMap<String, Span> = HashMap::new();
        for item in items {
            let DatumKind::String(text) = item.kind else {
                self.report_wrong_value(key, &item, "strings");
                continue;
            };
            if let Some(&first) = seen.get(&text) {
                let at = self.at(item.span);
                self.findings.push(rules::duplicate::finding(at, &format!("\"{text}\" in `:{key}`"), first));
                continue;
            }
            seen.insert(text.clone(), item.span);
            strings.push(Spanned::new(text, item.span));
        }
        Some(strings)
    }
}

/// Accepts an HTTP URL with a host.
pub(super) fn as_url(text: &str) -> Option<String> {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    host.is_some_and(|host| !host.is_empty() && !host.starts_with('/')).then(|| text.to_owned())
}

/// Returns "`a`, `b` or `c`".
fn one_of(words: &[&str]) -> String {
    let shown: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match shown.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        few => few.concat(),
    }
}
