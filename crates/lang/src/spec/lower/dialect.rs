//! `(defdialect :name "kimi" :errors ((:says ["…"] :means overflow)) …)`: tables, read by the keys of the language.

use serde_json::{Map, Value};

use super::lowerer::Lowerer;
use super::plist::Entry;
use crate::diagnostic::Severity;
use crate::spec::DialectSpec;
use crate::spec::reference::{self, Key, KeyValue, Plist};
use crate::spec::rules::missing_key;
use crate::syntax::{Datum, DatumKind, Folder, NodeId, parse};
use crate::text::{Sources, Span, Spanned};

/// Reads the keys that `wants` of the dialects in `text`, which has no errors. It is several times as fast as
/// [`lower`](super::lower) for a few keys of a long text.
pub fn read_dialects(text: &str, wants: impl Fn(&str) -> bool) -> Vec<DialectSpec> {
    let source = Sources::default().id_ahead(0);
    let (tree, _) = parse(source, text);
    let (mut folder, mut lowerer) = (Folder::new(source, text, &tree), Lowerer::new(source));
    let mut lower = |form| {
        let items: Vec<NodeId> = tree.children(form).skip(1).collect();
        let wanted = items.chunks(2).filter(|pair| {
            let key = pair.first().map_or("", |key| tree.text(*key, text));
            wants(key.trim_start_matches(':'))
        });
        let data = wanted.flatten().map(|item| folder.fold(*item)).collect();
        lowerer.lower_dialect(tree.span(form), data)
    };
    tree.roots().filter_map(&mut lower).collect()
}

impl Lowerer {
    /// Lowers the plist of a dialect; `None` if it has no usable name.
    pub(super) fn lower_dialect(&mut self, span: Span, mut items: Vec<Datum>) -> Option<DialectSpec> {
        let is_name = |item: &Datum| matches!(&item.kind, DatumKind::Keyword(word) if word == ":name");
        let name = match items.iter().position(is_name) {
            Some(at) if at + 1 < items.len() => {
                let name = items.drain(at..at + 2).nth(1)?;
                let place = name.span;
                self.take_name(name).map(|name| Spanned::new(name, place))
            }
            _ => {
                self.report_missing_name(Plist::Dialect, span);
                None
            }
        };
        let rows = self.lower_table(Plist::Dialect, items);
        let name = name.filter(|_| !self.is_incomplete())?;
        Some(DialectSpec { source: self.source, span, name, rows })
    }

    /// Reads the keys of `plist` with values of their kinds.
    fn lower_table(&mut self, plist: Plist, items: Vec<Datum>) -> Map<String, Value> {
        let entries = self.read_plist(items, plist);
        let mut table = Map::with_capacity(entries.len());
        for Entry { key, key_span, value } in entries {
            let Some(known) = reference::key(plist, &key) else {
                self.report_unknown_key(plist, &key, key_span);
                continue;
            };
            if let Some(value) = self.take_kind(plist, known, value) {
                table.insert(key, value);
            }
        }
        table
    }

    /// Reads a value of the kind that `key` takes.
    fn take_kind(&mut self, plist: Plist, key: &Key, value: Datum) -> Option<Value> {
        let name = key.name;
        Some(match key.value {
            KeyValue::Text => Value::from(self.take_string(name, value)?),
            KeyValue::Quantity => Value::from(self.take_duration(name, value)?.as_secs_f64()),
            KeyValue::Dialect => Value::from(self.take_dialect_name(name, value)?),
            KeyValue::Flag => Value::from(self.take_flag(name, &value)),
            KeyValue::Number => {
                Value::from(self.take_integer(name, &value, "a positive integer", 1..=i64::from(u32::MAX))?)
            }
            KeyValue::Status => Value::from(self.take_status(name, &value)?),
            KeyValue::Words(_) => Value::from(self.take_word::<String>(plist, name, value)?),
            KeyValue::WordList(_) => {
                let words = self.take_elements(name, value, "a vector of words")?;
                words.into_iter().filter_map(|word| self.take_word::<String>(plist, name, word)).collect()
            }
            KeyValue::Statuses => {
                let statuses = self.take_some_elements(name, value, "a vector of HTTP statuses")?;
                statuses.into_iter().filter_map(|status| self.take_status(name, &status)).collect()
            }
            KeyValue::List => {
                let texts = self.take_some_elements(name, value, "a vector of strings")?;
                texts.into_iter().filter_map(|text| self.take_string(name, text)).collect()
            }
            KeyValue::Plist(inner) => self.take_table(name, inner, value)?,
            KeyValue::Plists(inner) => {
                let rows = self.take_elements(name, value, "a list of plists")?;
                rows.into_iter().filter_map(|row| self.take_table(name, inner, row)).collect()
            }
            _ => self.json_value(value)?.to_value(),
        })
    }

    fn take_status(&mut self, key: &str, value: &Datum) -> Option<i64> {
        self.take_integer(key, value, "an HTTP status from 100 to 599", 100..=599)
    }

    /// Reads the name of a dialect. Whether it exists is known when the project is read.
    pub(super) fn take_dialect_name(&mut self, key: &str, value: Datum) -> Option<String> {
        let is_name = |word: &str| !word.is_empty();
        let expected = "the name of a dialect such as `llama-cpp`";
        self.take_parsed(key, value, expected, |word| is_name(word).then(|| word.to_owned()))
    }

    /// Reads a plist that needs some of its keys.
    fn take_table(&mut self, name: &str, plist: Plist, value: Datum) -> Option<Value> {
        let (span, reported) = (value.span, self.findings.len());
        let items = self.take_plist(name, value, "(:key VALUE)")?;
        let table = self.lower_table(plist, items);
        let is_missing = |keys: &&&[&str]| !keys.iter().any(|key| table.contains_key(*key));
        let missing = needed(plist).iter().find(is_missing).and_then(|keys| keys.first());
        let Some(missing) = missing else { return Some(Value::Object(table)) };
        // The value of a key may be wrong.
        let of_row = self.findings.get(reported..).unwrap_or_default();
        if !of_row.iter().any(|finding| finding.severity == Severity::Error) {
            self.findings.push(missing_key::finding(self.at(span), plist, missing));
        }
        None
    }
}

/// Returns sets of keys, of each of which a plist needs one: without a condition, a row would match everything.
fn needed(plist: Plist) -> &'static [&'static [&'static str]] {
    match plist {
        Plist::Probe => &[&["page", "header", "owner"]],
        Plist::Feature => &[&["feature"], &["support"]],
        Plist::ErrorRow => &[&["says", "any", "unknown-member", "code", "status"], &["means", "send"]],
        Plist::Finish => &[&["reasons"], &["means"]],
        Plist::Delay => &[&["says", "member"]],
        Plist::Model => &[&["names"]],
        Plist::ImageLimits => &[&["size"], &["count"], &["total"]],
        _ => &[],
    }
}
