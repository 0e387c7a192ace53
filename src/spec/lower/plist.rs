//! Plists: `:key value :key value …`.

use std::collections::HashMap;

use super::{Lowerer, nearest};
use crate::spec::rules;
use crate::syntax::{Datum, DatumKind};
use crate::text::Span;

/// One key with its value.
pub(super) struct Entry {
    /// The key without its leading colon.
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) value: Datum,
}

/// Keywords that are values, never keys without one.
const CONSTANT_KEYWORDS: [&str; 4] = [":json-false", ":false", ":null", ":json-null"];

/// Whether it can be meant as a key.
fn is_key(datum: &Datum, known: &[&str]) -> bool {
    match &datum.kind {
        DatumKind::Keyword(word) => !CONSTANT_KEYWORDS.contains(&word.as_str()),
        DatumKind::Symbol(word) => known.contains(&word.as_str()),
        _ => false,
    }
}

impl Lowerer {
    /// The entries of a plist, without duplicates; `known` are the keys of the place, for suggestions.
    pub(super) fn read_plist(&mut self, items: Vec<Datum>, known: &[&str]) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen: HashMap<String, Span> = HashMap::new();
        let mut items = items.into_iter().peekable();
        while let Some(item) = items.next() {
            let key = match item.kind {
                DatumKind::Keyword(key) => key.strip_prefix(':').unwrap_or(&key).to_owned(),
                DatumKind::Symbol(word) if known.contains(&word.as_str()) => {
                    self.findings.push(
                        self.finding(
                            &rules::STRAY_VALUE,
                            item.span,
                            format!("`{word}` is a key without its colon"),
                        )
                        .fixed_by(
                            format!("write `:{word}`"),
                            item.span,
                            format!(":{word}"),
                        ),
                    );
                    word
                }
                DatumKind::Invalid => continue,
                _ => {
                    let message = format!("expected a key such as `:name`, found {}", item.describe());
                    self.tell(&rules::STRAY_VALUE, item.span, message);
                    // Up to the next key it is one mistake.
                    while items.next_if(|next| !is_key(next, known)).is_some() {}
                    continue;
                }
            };
            let value = items.next_if(|next| {
                !matches!(&next.kind, DatumKind::Keyword(word) if !CONSTANT_KEYWORDS.contains(&word.as_str()))
            });
            let Some(value) = value else {
                self.tell(&rules::ODD_PLIST, item.span, format!("`:{key}` has no value"));
                continue;
            };
            if let Some(stem) = key.strip_suffix(':') {
                let mut finding = self
                    .finding(
                        &rules::STRAY_COLON,
                        item.span,
                        format!("likely a typo: the key `:{key}` ends in a colon"),
                    )
                    .labelled(format!("did you mean `:{stem}`?"))
                    .note(format!("it is sent as the JSON key \"{key}\", which no API knows"));
                finding = finding.fixed_by(format!("write `:{stem}`"), item.span, format!(":{stem}"));
                self.findings.push(finding);
            }
            if let Some(&first) = seen.get(&key) {
                let message = format!("`:{key}` is given twice; the first counts");
                let finding = self.finding(&rules::DUPLICATE_KEY, item.span, message);
                self.findings.push(finding.and_at(first, "first given here"));
                continue;
            }
            seen.insert(key.clone(), item.span);
            entries.push(Entry { key, key_span: item.span, value });
        }
        entries
    }

    /// Warns of a key that the place does not know.
    pub(super) fn tell_unknown_key(
        &mut self,
        rule: &'static crate::diagnostic::Rule,
        entry: &Entry,
        of: &str,
        known: &[&str],
    ) {
        // A stray colon was told already: one mistake, one finding.
        if entry.key.ends_with(':') {
            return;
        }
        let key = &entry.key;
        let mut finding = self.finding(rule, entry.key_span, format!("`:{key}` is no key of {of}"));
        if let Some(near) = nearest(key, known.iter().copied()) {
            finding = finding.labelled(format!("did you mean `:{near}`?")).maybe_fixed_by(
                format!("write `:{near}`"),
                entry.key_span,
                format!(":{near}"),
            );
        }
        self.findings.push(finding);
    }

    /// Tells that a value is of the wrong kind.
    pub(super) fn tell_wrong(&mut self, key: &str, value: &Datum, expected: &str) {
        if value.kind != DatumKind::Invalid {
            let message = format!("`:{key}` takes {expected}, found {}", value.describe());
            self.tell(&rules::WRONG_VALUE, value.span, message);
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
        if let DatumKind::String(text) | DatumKind::Symbol(text) = &value.kind
            && let Some(parsed) = parse(text)
        {
            return Some(parsed);
        }
        if let DatumKind::String(text) | DatumKind::Symbol(text) = &value.kind {
            let message = format!("`:{key}` takes {expected}, found `{text}`");
            self.tell(&rules::WRONG_VALUE, value.span, message);
        } else {
            self.tell_wrong(key, &value, expected);
        }
        None
    }

    /// A vector or list of strings, with their places.
    pub(super) fn take_strings(
        &mut self,
        key: &str,
        value: Datum,
    ) -> Option<Vec<crate::text::Spanned<String>>> {
        let (DatumKind::Vector(items) | DatumKind::List(items)) = value.kind else {
            self.tell_wrong(key, &value, "a vector of strings");
            return None;
        };
        let mut strings = Vec::new();
        for item in items {
            match item.kind {
                DatumKind::String(text) => strings.push(crate::text::Spanned::new(text, item.span)),
                _ => self.tell_wrong(key, &item, "strings"),
            }
        }
        Some(strings)
    }
}
