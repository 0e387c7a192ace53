//! Argument plists to JSON Schema.

use std::collections::HashSet;

use super::lowerer::Lowerer;
use super::plist::Entry;
use crate::diagnostic::{Diagnostic, Severity};
use crate::spec::keywords::{self, TYPES, ValueKind};
use crate::spec::reference::Plist;
use crate::spec::rules::{self, wrong_value::schema as wrong};
use crate::spec::schema::{Schema, SchemaPosition};
use crate::spec::{Json, JsonKind, Member};
use crate::syntax::rules::not_json;
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, Span, Spanned};

/// The keyword that an unknown key was probably meant to be.
#[derive(Clone, Copy)]
struct IntendedKeyword {
    keyword: &'static str,
    /// Whether the keyword is present as well.
    is_taken: bool,
}

impl Lowerer {
    /// Lowers the schema under `key`. Returns `None` if it is not a schema, which has been reported.
    pub(super) fn lower_schema(
        &mut self,
        key: &str,
        datum: Datum,
        position: SchemaPosition<'_>,
    ) -> Option<Json> {
        let span = datum.span;
        match datum.kind {
            DatumKind::List(items) => {
                if items.first().is_some_and(|first| !is_key(first)) {
                    let found = Datum { span, kind: DatumKind::List(items) };
                    self.findings.push(wrong::schema(self.at(span), key, &found));
                    return None;
                }
                let is_empty = items.is_empty();
                let entries = self.read_plist(items, Plist::Argument);
                let members = self.lower_keywords(entries, span, position);
                // A schema without readable members differs from the empty schema, which has a meaning.
                let is_lost =
                    members.is_empty() && !is_empty && !matches!(position, SchemaPosition::Property(_));
                (!is_lost).then_some(Json { span, kind: JsonKind::Object(members) })
            }
            // `:additionalProperties :json-false`, `:items t`: a schema may be a boolean.
            DatumKind::Symbol(word) if word == "t" => Some(Json { span, kind: JsonKind::Bool(true) }),
            DatumKind::Keyword(word) if word == ":json-false" || word == ":false" => {
                self.constant(&word, span);
                Some(Json { span, kind: JsonKind::Bool(false) })
            }
            DatumKind::Quoted(inner) => {
                self.report_quoted(span, &inner);
                None
            }
            DatumKind::Invalid => None,
            kind => {
                let found = Datum { span, kind };
                self.findings.push(wrong::schema(self.at(span), key, &found));
                // Emacs sends everything but a symbol unchanged.
                match found.kind {
                    DatumKind::Vector(items) if wrong::is_writable(&items) => {
                        Some(self.lower_elements(key, items, span))
                    }
                    DatumKind::String(text) => Some(Json { span, kind: JsonKind::String(text) }),
                    DatumKind::Number(number) => Some(Json { span, kind: self.json_number(number, span) }),
                    _ => None,
                }
            }
        }
    }

    /// Lowers the members of a schema.
    pub(super) fn lower_keywords(
        &mut self,
        entries: Vec<Entry>,
        span: Span,
        position: SchemaPosition<'_>,
    ) -> Vec<Member> {
        let mut members = Vec::with_capacity(entries.len());
        let mut unread: Vec<String> = Vec::new();
        // Keywords that are present, or will be after a misspelling is fixed: a fix must not add them again.
        let known = entries.iter().filter_map(|entry| keywords::find(&entry.key));
        let mut taken: Vec<&str> = known.map(|keyword| keyword.name).collect();
        let context = SchemaContext::of(&entries, position);
        for Entry { key, key_span, value } in entries {
            let meant = match keywords::find(&key) {
                Some(_) => None,
                None => rules::unknown_key::meant(Plist::Argument, &key),
            };
            let meant = meant.map(|keyword| {
                let is_taken = taken.contains(&keyword);
                if !is_taken {
                    taken.push(keyword);
                }
                IntendedKeyword { keyword, is_taken }
            });
            // The keyword meant by a misspelt key is not missing.
            unread.extend(meant.map(|meant| meant.keyword.to_owned()));
            match self.lower_keyword(&key, key_span, value, meant, &context) {
                Some(value) => members.push(Member { key, key_span, value }),
                None => unread.push(key),
            }
        }
        let schema = Schema { source: self.source, span, position, members: &members, unread: &unread };
        rules::check_schema(&schema, &mut self.findings);
        members
    }

    /// `meant` is the keyword that an unknown key probably misspells.
    fn lower_keyword(
        &mut self,
        key: &str,
        key_span: Span,
        value: Datum,
        meant: Option<IntendedKeyword>,
        context: &SchemaContext<'_>,
    ) -> Option<Json> {
        match key {
            "type" => return self.lower_type(value),
            "enum" => return self.lower_enum(value, &context.types),
            "required" => {
                return self.lower_required(value, key_span, context.position, context.has_properties);
            }
            _ => {}
        }
        match keywords::find(key).map(|keyword| keyword.value_kind) {
            Some(ValueKind::Named) => self.lower_properties(key, value),
            Some(ValueKind::Schema) => {
                let position = if key == "items" { SchemaPosition::Items } else { SchemaPosition::Nested };
                self.lower_schema(key, value, position)
            }
            Some(ValueKind::Schemas) => self.lower_union(key, value),
            Some(
                value_kind @ (ValueKind::Text
                | ValueKind::Flag
                | ValueKind::Count
                | ValueKind::Number
                | ValueKind::Positive
                | ValueKind::Vector
                | ValueKind::Own
                | ValueKind::Any),
            ) => {
                let reported = self.findings.len();
                let span = value.span;
                let value = self.json_value(value);
                let later = self.findings.get_mut(reported..).unwrap_or_default();
                for finding in later.iter_mut().filter(|finding| finding.primary.span == span) {
                    not_json::expect(finding, &expected(value_kind, key, &context.types));
                }
                value
            }
            None => {
                let at = self.at(key_span);
                let mut finding = unknown_keyword(key, at, context.position);
                if meant.is_some_and(|meant| meant.is_taken) {
                    finding.iter_mut().for_each(rules::report_conflict);
                }
                // `:Type string`: the symbol is invalid only because the key is misspelt.
                let is_type = meant.is_some_and(|meant| meant.keyword == "type");
                let is_word = is_type && matches!(value.kind, DatumKind::Symbol(_));
                if let Some(finding) = finding.as_mut().filter(|_| is_word) {
                    finding.severity = Severity::Error;
                }
                self.findings.extend(finding);
                if is_word { None } else { self.json_value(value) }
            }
        }
    }

    /// Lowers the value of `:anyOf` and similar keywords.
    fn lower_union(&mut self, key: &str, value: Datum) -> Option<Json> {
        let span = value.span;
        match value.kind {
            DatumKind::Vector(items) => self.lower_schemas(key, items, span),
            DatumKind::Quoted(inner) => {
                self.report_quoted(span, &inner);
                None
            }
            DatumKind::Invalid => None,
            kind => {
                let found = Datum { span, kind };
                self.findings.push(wrong::union(self.at(span), key, &found));
                None
            }
        }
    }

    /// Lowers a vector of schemas; `None` if none of them could be read.
    fn lower_schemas(&mut self, key: &str, items: Vec<Datum>, span: Span) -> Option<Json> {
        self.findings.extend(wrong::schema_words(self.source, key, &items));
        let is_empty = items.is_empty();
        let schemas = self.lower_elements(key, items, span);
        let is_lost = matches!(&schemas.kind, JsonKind::Array(items) if items.is_empty()) && !is_empty;
        (!is_lost).then_some(schemas)
    }

    /// Lowers the elements of a vector of schemas. Symbols have been reported.
    fn lower_elements(&mut self, key: &str, items: Vec<Datum>, span: Span) -> Json {
        let mut schemas = Vec::new();
        for item in items {
            match item.kind {
                DatumKind::Symbol(word) if word != "t" => {}
                DatumKind::String(text) => {
                    schemas.push(Json { span: item.span, kind: JsonKind::String(text) });
                }
                kind => {
                    schemas.extend(self.lower_schema(
                        key,
                        Datum { span: item.span, kind },
                        SchemaPosition::Nested,
                    ));
                }
            }
        }
        Json { span, kind: JsonKind::Array(schemas) }
    }

    /// Lowers a plist from names to schemas.
    fn lower_properties(&mut self, key: &str, value: Datum) -> Option<Json> {
        let span = value.span;
        let items = match value.kind {
            DatumKind::List(items) => items,
            DatumKind::Quoted(inner) => {
                self.report_quoted(span, &inner);
                return None;
            }
            DatumKind::Invalid => return None,
            kind => {
                let found = Datum { span, kind };
                self.findings.push(wrong::named(self.at(span), key, found.describe()));
                return None;
            }
        };
        let entries = match items.first().map(|first| &first.kind) {
            // `(a (…) "b" (…))`: all first elements are names.
            Some(_) if has_bare_keys(&items) => {
                self.findings.push(rules::bare_key::finding(self.at(span), &items));
                items_of_pairs(items)
            }
            None | Some(DatumKind::Keyword(_)) => {
                // A property may have any name, including `:type` and `:description:`, so there are no known keys.
                self.read_members(items)
            }
            Some(_) => match alist_entries(&items) {
                Some(entries) => {
                    let members = self.lower_alist(entries, span);
                    return Some(Json { span, kind: JsonKind::Object(members) });
                }
                None => {
                    let what = match items.first().map(|first| &first.kind) {
                        Some(DatumKind::Dotted(..)) => "an alist",
                        Some(DatumKind::List(_)) => "a list of plists",
                        Some(_) | None => "a list",
                    };
                    self.findings.push(wrong::named(self.at(span), key, what));
                    return None;
                }
            },
        };
        let members = self.lower_named(entries, key == "properties");
        Some(Json { span, kind: JsonKind::Object(members) })
    }

    /// Lowers the schemas in an alist. gptel does not convert a `:type` in an alist.
    fn lower_alist(&mut self, entries: Vec<Entry>, span: Span) -> Vec<Member> {
        let start = self.findings.len();
        let mut types = Vec::new();
        for entry in &entries {
            let DatumKind::List(items) = &entry.value.kind else { continue };
            let mut pairs = items.iter();
            while let (Some(key), Some(value)) = (pairs.next(), pairs.next()) {
                if !matches!(&key.kind, DatumKind::Keyword(key) if key == ":type") {
                    continue;
                }
                types.push(value.span);
                if let DatumKind::Symbol(word) = &value.kind
                    && TYPES.contains(&word.as_str())
                {
                    self.findings.push(rules::alist_object::symbol(self.at(value.span), word));
                }
            }
        }
        if self.findings.len() == start {
            self.findings.push(rules::alist_object::finding(self.at(span)));
        }
        types.sort_unstable();
        let reported = self.findings.len();
        let members = self.lower_named(entries, true);
        // In an alist, a `:type` must be a string.
        let later = self.findings.split_off(reported);
        let is_right = |finding: &Diagnostic| {
            *finding.rule == rules::type_as_string::TYPE_AS_STRING
                && types.binary_search(&finding.primary.span).is_ok()
        };
        self.findings.extend(later.into_iter().filter(|finding| !is_right(finding)));
        members
    }

    fn lower_named(&mut self, entries: Vec<Entry>, is_property: bool) -> Vec<Member> {
        let mut members = Vec::with_capacity(entries.len());
        for entry in entries {
            let name = Spanned::new(entry.key, entry.key_span);
            let position = if is_property { SchemaPosition::Property(&name) } else { SchemaPosition::Nested };
            let span = entry.value.span;
            let value = self.lower_schema(&name.value, entry.value, position);
            // An unreadable property still exists: `:required` may name it.
            let unread = is_property.then_some(Json { span, kind: JsonKind::Bool(true) });
            if let Some(value) = value.or(unread) {
                members.push(Member { key: name.value, key_span: name.span, value });
            }
        }
        members
    }
}

fn unknown_keyword(key: &str, at: Location, position: SchemaPosition<'_>) -> Option<Diagnostic> {
    let is_inside = !matches!(position, SchemaPosition::Argument { .. });
    match key {
        "optional" | "name" if is_inside => Some(rules::useless_key::of_argument(at, key)),
        // A stray colon has been reported.
        _ => (!key.ends_with(':')).then(|| rules::unknown_key::finding(at, Plist::Argument, key)),
    }
}

/// The parts of a schema that affect how its keywords are lowered.
struct SchemaContext<'n> {
    position: SchemaPosition<'n>,
    /// The types that the schema names, without duplicates; empty if it names none or if they could not be read.
    types: Vec<String>,
    has_properties: bool,
}

impl<'n> SchemaContext<'n> {
    fn of(entries: &[Entry], position: SchemaPosition<'n>) -> Self {
        let value = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value.kind);
        let types = match value("type") {
            Some(DatumKind::Symbol(word) | DatumKind::String(word)) => vec![word.clone()],
            Some(DatumKind::Vector(items)) => {
                let mut seen = HashSet::new();
                let words = items.iter().filter_map(|item| match &item.kind {
                    DatumKind::Symbol(word) | DatumKind::String(word) => Some(word),
                    _ => None,
                });
                words.filter(|word| seen.insert(*word)).cloned().collect()
            }
            _ => Vec::new(),
        };
        Self { position, types, has_properties: value("properties").is_some() }
    }
}

/// Returns the possible types of a keyword's value; empty for any type.
fn expected(value_kind: ValueKind, key: &str, types: &[String]) -> Vec<String> {
    let one = |name: &str| vec![name.to_owned()];
    match value_kind {
        ValueKind::Text => one("string"),
        ValueKind::Flag => one("boolean"),
        ValueKind::Count | ValueKind::Number | ValueKind::Positive => one("number"),
        ValueKind::Vector => one("array"),
        ValueKind::Any if matches!(key, "default" | "const") => types.to_vec(),
        ValueKind::Any | ValueKind::Own | ValueKind::Schema | ValueKind::Schemas | ValueKind::Named => {
            Vec::new()
        }
    }
}

/// Whether the item can be the first key of a plist.
fn is_key(datum: &Datum) -> bool {
    match &datum.kind {
        DatumKind::Keyword(_) | DatumKind::Invalid => true,
        DatumKind::Symbol(word) => keywords::find(word).is_some(),
        _ => false,
    }
}

/// Whether there are symbols or strings instead of keywords: `(a (:type string) "b" (:type number))`.
fn has_bare_keys(items: &[Datum]) -> bool {
    let is_bare = |key: &Datum| matches!(&key.kind, DatumKind::Symbol(_) | DatumKind::String(_));
    let is_pair = |pair: &[Datum]| match pair {
        [key, value] => {
            (is_bare(key) || matches!(key.kind, DatumKind::Keyword(_)))
                && matches!(value.kind, DatumKind::List(_))
        }
        _ => false,
    };
    items.iter().step_by(2).any(is_bare) && items.chunks(2).all(is_pair)
}

fn items_of_pairs(items: Vec<Datum>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut items = items.into_iter();
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        if let DatumKind::Symbol(word) | DatumKind::Keyword(word) | DatumKind::String(word) = key.kind {
            let word = word.strip_prefix(':').unwrap_or(&word).to_owned();
            entries.push(Entry { key: word, key_span: key.span, value });
        }
    }
    without_duplicates(entries)
}

/// Returns the entries of `((a :type "string") (b :type "number"))`, the form in which Emacs reads an alist of plists.
/// Of duplicate keys, the first one counts.
pub(super) fn alist_entries(items: &[Datum]) -> Option<Vec<Entry>> {
    let entry = |item: &Datum| match &item.kind {
        DatumKind::List(pair) => match pair.split_first() {
            Some((Datum { kind: DatumKind::Symbol(key), span }, rest)) if key != "quote" => Some(Entry {
                key: key.clone(),
                key_span: *span,
                value: Datum { span: item.span, kind: DatumKind::List(rest.to_vec()) },
            }),
            Some(_) | None => None,
        },
        _ => None,
    };
    items.iter().map(entry).collect::<Option<Vec<_>>>().map(without_duplicates)
}

fn without_duplicates(mut entries: Vec<Entry>) -> Vec<Entry> {
    let mut seen = std::collections::HashSet::new();
    entries.retain(|entry| seen.insert(entry.key.clone()));
    entries
}
