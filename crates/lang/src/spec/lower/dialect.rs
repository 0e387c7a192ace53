//! `(defdialect :name "kimi" :errors ((:says ["…"] :means overflow)) …)`: tables, read by the keys of the language.

use serde_json::{Map, Value};

use super::lowerer::Lowerer;
use super::plist::Entry;
use crate::spec::DialectSpec;
use crate::spec::reference::{self, Key, KeyValue, Plist};
use crate::spec::rules::missing_key;
use crate::syntax::{Datum, DatumKind};
use crate::text::{Span, Spanned};

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
        let (source, name) = (self.source, name.filter(|_| !self.is_incomplete())?);
        Some(DialectSpec { source, span, name, rows })
    }

    /// Reads the keys of `plist` with values of their kinds.
    fn lower_table(&mut self, plist: Plist, items: Vec<Datum>) -> Map<String, Value> {
        let mut table = Map::new();
        for Entry { key, key_span, value } in self.read_plist(items, plist) {
            match reference::key(plist, &key) {
                Some(known) => {
                    let value = self.take_kind(plist, known, value);
                    table.extend(value.map(|value| (key, value)));
                }
                None => self.report_unknown_key(plist, &key, key_span),
            }
        }
        table
    }

    /// Reads a value of the kind that `key` takes.
    fn take_kind(&mut self, plist: Plist, key: &Key, value: Datum) -> Option<Value> {
        let name = key.name;
        Some(match key.value {
            KeyValue::Text | KeyValue::Quantity => Value::from(self.take_string(name, value)?),
            KeyValue::Dialect => Value::from(self.take_dialect_name(name, value)?),
            KeyValue::Flag => Value::from(self.take_flag(name, &value)),
            KeyValue::Number => {
                Value::from(self.take_integer(name, &value, "a positive integer", 1..=i64::MAX)?)
            }
            KeyValue::Words(_) => Value::from(self.take_word::<String>(plist, name, value)?),
            KeyValue::WordList(_) => {
                let words = self.take_elements(name, value, "a vector of words")?;
                words.into_iter().filter_map(|word| self.take_word::<String>(plist, name, word)).collect()
            }
            KeyValue::Numbers => {
                let numbers = self.take_some_elements(name, value, "a vector of numbers")?;
                let numbers = numbers.into_iter();
                numbers.filter_map(|item| self.take_integer(name, &item, "numbers", 1..=i64::MAX)).collect()
            }
            KeyValue::List => {
                let texts = self.take_some_elements(name, value, "a vector of strings")?;
                texts.into_iter().filter_map(|text| self.take_string(name, text)).collect()
            }
            KeyValue::Plist(inner) => {
                let items = self.take_plist(name, value, "(:key VALUE)")?;
                Value::Object(self.lower_table(inner, items))
            }
            KeyValue::Plists(inner) => {
                let rows = self.take_elements(name, value, "a list of plists")?;
                rows.into_iter().filter_map(|row| self.take_row(name, inner, row)).collect()
            }
            _ => self.json_value(value)?.to_value(),
        })
    }

    /// Reads the name of a dialect. Whether it exists is known when the project is read.
    pub(super) fn take_dialect_name(&mut self, key: &str, value: Datum) -> Option<String> {
        let is_name = |word: &str| !word.is_empty();
        let expected = "the name of a dialect such as `llama-cpp`";
        self.take_parsed(key, value, expected, |word| is_name(word).then(|| word.to_owned()))
    }

    /// Reads a row, which needs a condition: without one it would match everything.
    fn take_row(&mut self, name: &str, plist: Plist, row: Datum) -> Option<Value> {
        let span = row.span;
        let items = self.take_plist(name, row, "(:key VALUE)")?;
        let row = self.lower_table(plist, items);
        let conditions = conditions(plist);
        match conditions.first() {
            Some(first) if !conditions.iter().any(|key| row.contains_key(*key)) => {
                self.findings.push(missing_key::finding(self.at(span), plist, first));
                None
            }
            _ => Some(Value::Object(row)),
        }
    }
}

/// Returns the keys of a row of which one must be there: without a condition, a row would match everything.
fn conditions(plist: Plist) -> &'static [&'static str] {
    match plist {
        Plist::Probe => &["page", "header", "owner"],
        Plist::Feature => &["feature"],
        Plist::ErrorRow => &["says", "any", "unknown-member", "code", "status"],
        Plist::Finish => &["reasons"],
        Plist::Delay => &["says", "member"],
        Plist::Model => &["names"],
        _ => &[],
    }
}
