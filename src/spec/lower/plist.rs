//! Plists: `:key value :key value …`.

use std::collections::HashMap;

use super::Lowerer;
use crate::diagnostic::Severity;
use crate::spec::{keywords, rules};
use crate::syntax::{Datum, DatumKind};
use crate::text::{Span, Spanned};

/// One key with its value.
pub(super) struct Entry {
    /// The key without its leading colon.
    pub(super) key: String,
    pub(super) key_span: Span,
    /// [`DatumKind::Invalid`] where it is missing or no constant; that was told.
    pub(super) value: Datum,
}

/// Keywords that are values, never keys without one.
const CONSTANT_KEYWORDS: [&str; 4] = [":json-false", ":false", ":null", ":json-null"];

/// Whether it can be meant as a key.
fn is_key(datum: &Datum, known: &[&str]) -> bool {
    match &datum.kind {
        DatumKind::Keyword(word) => !CONSTANT_KEYWORDS.contains(&word.as_str()),
        DatumKind::Symbol(word) | DatumKind::String(word) => is_known(word, known),
        _ => false,
    }
}

/// Whether `word` is one of `known`, with its colon or without.
fn is_known(word: &str, known: &[&str]) -> bool {
    known.contains(&word.strip_prefix(':').unwrap_or(word))
}

/// Whether it is a keyword that is no key of the place.
fn is_lone_word(datum: &Datum, known: &[&str]) -> bool {
    matches!(&datum.kind, DatumKind::Keyword(word) if !is_known(word, known) && !word.ends_with(':'))
}

/// Whether gptel sends a keyword of a schema rightly without its colon: those it looks for by their colon are lost.
fn is_sent_bare(word: &str) -> bool {
    !matches!(word, "name" | "optional" | "type") && !keywords::takes(word).holds_schemas()
}

impl Lowerer {
    /// The entries of a plist, without duplicates; `known` are the keys of the place, for suggestions. None: any key
    /// may stand there.
    pub(super) fn read_plist(&mut self, items: Vec<Datum>, known: &[&str]) -> Vec<Entry> {
        self.read_entries(items, known, false)
    }

    /// The entries of a schema's plist. Emacs writes a key without its colon as it writes one with it.
    pub(super) fn read_schema_plist(&mut self, items: Vec<Datum>, known: &[&str]) -> Vec<Entry> {
        self.read_entries(items, known, true)
    }

    fn read_entries(&mut self, items: Vec<Datum>, known: &[&str], takes_bare_keys: bool) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut items = items.into_iter().peekable();
        let mut end_of_string = None;
        let mut colon: Option<usize> = None;
        let mut held = None;
        while let Some(item) = held.take().or_else(|| items.next()) {
            let at = self.at(item.span);
            let key = match item.kind {
                DatumKind::Keyword(key) => key.strip_prefix(':').unwrap_or(&key).to_owned(),
                DatumKind::Symbol(word) if known.contains(&word.as_str()) => {
                    self.findings.push(if takes_bare_keys && is_sent_bare(&word) {
                        rules::bare_key::keyword(at, &word)
                    } else {
                        rules::stray_value::without_colon(at, &word)
                    });
                    word
                }
                // Without a value after it, it is one itself: `:required "name" "type"`.
                DatumKind::String(word)
                    if is_known(&word, known)
                        && items.peek().is_some_and(|next| !matches!(next.kind, DatumKind::Keyword(_))) =>
                {
                    let key = word.strip_prefix(':').unwrap_or(&word).to_owned();
                    self.findings.push(rules::key_as_string::finding(at, &key));
                    key
                }
                kind => {
                    let found = Datum { span: item.span, kind };
                    // Code in the place of a key was told.
                    if found.kind != DatumKind::Invalid {
                        let touches = end_of_string == Some(item.span.start);
                        self.findings.push(rules::stray_value::finding(at, found.describe(), touches));
                    }
                    // Up to the next key it is one mistake.
                    while items.next_if(|next| !is_key(next, known)).is_some() {}
                    continue;
                }
            };
            let value = items.next_if(|next| {
                !matches!(&next.kind, DatumKind::Keyword(word) if !CONSTANT_KEYWORDS.contains(&word.as_str()))
            });
            let value = value.or_else(|| {
                // `:type :string`: a word that is no key here, with no value of its own.
                let word =
                    items.next_if(|next| known.contains(&key.as_str()) && is_lone_word(next, known))?;
                if items.peek().is_some_and(|next| !is_key(next, known)) {
                    // It has one: it is a key, and this has none.
                    held = Some(word);
                    return None;
                }
                Some(self.keyword_as_value(&key, word))
            });
            let value = value.unwrap_or_else(|| {
                self.findings.push(rules::odd_plist::finding(at, &key));
                Datum { span: item.span, kind: DatumKind::Invalid }
            });
            end_of_string = matches!(value.kind, DatumKind::String(_)).then_some(value.span.end);
            // A property may have any name.
            let mut key = key;
            if key.len() > 1 && key.ends_with(':') && !known.is_empty() {
                let mut finding = rules::stray_colon::finding(at, &key);
                if key == "name:" && known.contains(&"name") && !seen.contains_key("name") {
                    // Without a name nothing is sent at all.
                    finding.severity = Severity::Error;
                    key = String::from("name");
                }
                match colon.and_then(|first| self.findings.get_mut(first)) {
                    Some(first) => rules::stray_colon::merge(first, finding),
                    None => {
                        colon = Some(self.findings.len());
                        self.findings.push(finding);
                    }
                }
            }
            let first = seen.get(&key).and_then(|&index| entries.get_mut(index));
            match first {
                // The first had no value: told, and this is it.
                Some(first) if first.value.kind == DatumKind::Invalid => first.value = value,
                Some(first) => {
                    let finding = rules::duplicate_key::finding(at, &key, first.key_span);
                    self.findings.push(finding);
                }
                None => {
                    seen.insert(key.clone(), entries.len());
                    entries.push(Entry { key, key_span: item.span, value });
                }
            }
        }
        entries
    }

    /// A keyword where a value belongs; `:required :true` is told with the rest of what is wrong about it.
    fn keyword_as_value(&mut self, key: &str, word: Datum) -> Datum {
        let DatumKind::Keyword(name) = &word.kind else { return word };
        if key == "required" {
            return word;
        }
        self.findings.push(rules::wrong_value::keyword(self.at(word.span), key, name));
        Datum { span: word.span, kind: DatumKind::Invalid }
    }

    /// Tells that a value is of the wrong kind.
    pub(super) fn tell_wrong(&mut self, key: &str, value: &Datum, expected: &str) {
        if value.kind != DatumKind::Invalid {
            let at = self.at(value.span);
            self.findings.push(rules::wrong_value::finding(at, key, expected, value.describe()));
        }
    }

    pub(super) fn take_string(&mut self, key: &str, value: Datum) -> Option<String> {
        match value.kind {
            DatumKind::String(text) => Some(text),
            _ => {
                self.tell_wrong(key, &value, "a string");
                None
            }
        }
    }

    /// `t` is true, `nil` and `:json-false` are false.
    pub(super) fn take_flag(&mut self, key: &str, value: &Datum) -> bool {
        match &value.kind {
            DatumKind::Symbol(word) if word == "t" => true,
            DatumKind::List(items) if items.is_empty() => false,
            DatumKind::Keyword(word) if word == ":json-false" || word == ":false" => false,
            _ => {
                self.tell_wrong(key, value, "t or nil");
                false
            }
        }
    }

    /// A value that `parse` understands.
    pub(super) fn take_parsed<T>(
        &mut self,
        key: &str,
        value: Datum,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let (DatumKind::String(text) | DatumKind::Symbol(text)) = &value.kind else {
            self.tell_wrong(key, &value, expected);
            return None;
        };
        let parsed = parse(text);
        if parsed.is_none() {
            let at = self.at(value.span);
            self.findings.push(rules::wrong_value::finding(at, key, expected, &format!("`{text}`")));
        }
        parsed
    }

    /// A vector or list of strings, with their places, each once.
    pub(super) fn take_strings(&mut self, key: &str, value: Datum) -> Option<Vec<Spanned<String>>> {
        let (DatumKind::Vector(items) | DatumKind::List(items)) = value.kind else {
            self.tell_wrong(key, &value, "a vector of strings");
            return None;
        };
        let mut strings = Vec::new();
        let mut seen: HashMap<String, Span> = HashMap::new();
        for item in items {
            match item.kind {
                DatumKind::String(text) => match seen.get(&text) {
                    Some(&first) => {
                        let at = self.at(item.span);
                        self.findings.push(rules::repeated_item::finding(at, key, &text, first));
                    }
                    None => {
                        seen.insert(text.clone(), item.span);
                        strings.push(Spanned::new(text, item.span));
                    }
                },
                _ => self.tell_wrong(key, &item, "strings"),
            }
        }
        Some(strings)
    }
}
