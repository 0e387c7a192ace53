//! The forms of a scenario file, with keys and items, and the findings about them.

use std::time::Duration;

use deftool_lang::spec::{advice_on_name, parse_duration};
use deftool_lang::syntax::{Datum, DatumKind, Folder, Number, parse};
use deftool_lang::text::{Location, SourceFile, SourceId, Sources, Span, one_line};
use serde_json::{Map, Number as JsonNumber, Value};

/// The maximum number of reported findings per file.
const MAX_FINDINGS: usize = 100;

/// The error for an invalid scenario file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", findings.join("\n"))]
pub struct ScenarioError {
    /// The findings, one line each: `FILE:LINE:COLUMN: error: …`.
    pub findings: Vec<String>,
}

/// `(head …)`
pub(super) struct Form {
    pub(super) head: String,
    pub(super) head_span: Span,
    pub(super) entries: Vec<Entry>,
}

/// An entry of a form.
pub(super) enum Entry {
    /// A key, with its colon, and its value.
    Key { key: String, span: Span, value: Datum },
    /// A value without a key.
    Item(Datum),
}

/// A file being read.
pub(super) struct Reader<'t> {
    text: &'t str,
    sources: Sources,
    source: SourceId,
    findings: Vec<(Span, String)>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(name: &str, text: &'t str) -> Self {
        let mut sources = Sources::new();
        let source = sources.add(SourceFile::new(name, text));
        Self { text, sources, source, findings: Vec::new() }
    }

    /// Returns the top-level forms of the file, as constants.
    pub(super) fn forms(&mut self) -> Vec<Datum> {
        let (tree, findings) = parse(self.source, self.text);
        let mut folder = Folder::new(self.source, self.text, &tree);
        let forms = tree.roots().map(|root| folder.fold_macro_data(root)).collect();
        for finding in findings.into_iter().chain(folder.findings) {
            self.report(finding.primary.span, finding.message);
        }
        forms
    }

    pub(super) fn report(&mut self, span: Span, message: impl Into<String>) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push((span, message.into()));
        }
    }

    /// Adds a finding for the whole file, if there are no other findings.
    pub(super) fn report_if_clean(&mut self, message: &str) {
        if self.findings.is_empty() {
            self.report(Span::default(), message);
        }
    }

    /// Reports an unknown word, with similar ones.
    pub(super) fn unknown(&mut self, span: Span, what: &str, word: &str, known: &[&str]) {
        let advice = advice_on_name(word, "words", known.iter().copied());
        self.report(span, format!("unknown {what} `{word}`; {advice}"));
    }

    /// Returns `read`, or the findings if there are any.
    pub(super) fn finish<T>(mut self, read: T) -> Result<T, ScenarioError> {
        if self.findings.is_empty() {
            return Ok(read);
        }
        self.findings.sort_by_key(|(span, _)| span.start);
        let line = |(span, message): &(Span, String)| {
            let place = self.sources.describe(Location { source: self.source, span: *span });
            one_line(format!("{place}: error: {message}"))
        };
        Err(ScenarioError { findings: self.findings.iter().map(line).collect() })
    }

    /// Converts a constant to a form. Reports a constant that is not a form.
    pub(super) fn form(&mut self, datum: Datum, expected: &str) -> Option<Form> {
        let Datum { span, kind } = datum;
        let found = Datum { span, kind: DatumKind::Invalid };
        let mut items = match kind {
            DatumKind::List(items) if !items.is_empty() => items.into_iter(),
            // Already reported.
            DatumKind::Invalid => return None,
            kind => {
                let what = Datum { kind, ..found }.describe();
                self.report(span, format!("expected {expected}, found {what}"));
                return None;
            }
        };
        let head = items.next()?;
        let DatumKind::Symbol(name) = head.kind else {
            self.report(
                head.span,
                format!("expected {expected}, found a list that starts with {}", head.describe()),
            );
            return None;
        };
        Some(Form { head: name, head_span: head.span, entries: self.pair(items) })
    }

    /// Converts an entry to a form, where only forms are allowed.
    pub(super) fn only_form(&mut self, entry: Entry, expected: &str) -> Option<Form> {
        match entry {
            Entry::Item(datum) => self.form(datum, expected),
            Entry::Key { key, span, .. } => {
                self.report(span, format!("expected {expected}, found `{key}`"));
                None
            }
        }
    }

    /// Returns the keys and items of a list without a head.
    pub(super) fn entries(&mut self, datum: Datum, expected: &str) -> Option<Vec<Entry>> {
        match datum.kind {
            DatumKind::List(items) => Some(self.pair(items.into_iter())),
            DatumKind::Invalid => None,
            _ => {
                self.report(datum.span, expected);
                None
            }
        }
    }

    fn pair(&mut self, mut items: impl Iterator<Item = Datum>) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        while let Some(item) = items.next() {
            let DatumKind::Keyword(key) = item.kind else {
                entries.push(Entry::Item(item));
                continue;
            };
            // A reply can contain several texts. Other keys must be unique.
            let is_duplicate =
                entries.iter().any(|entry| matches!(entry, Entry::Key { key: other, .. } if *other == key));
            if is_duplicate && !matches!(key.as_str(), ":text" | ":reasoning" | ":tokens") {
                self.report(item.span, format!("duplicate `{key}`"));
            }
            match items.next() {
                Some(value) => entries.push(Entry::Key { key, span: item.span, value }),
                None => self.report(item.span, format!("missing value for `{key}`")),
            }
        }
        entries
    }

    pub(super) fn string(&mut self, key: &str, value: Datum) -> Option<String> {
        match value.kind {
            DatumKind::String(text) => Some(text),
            _ => self.expected(key, "a string", &value),
        }
    }

    pub(super) fn strings(&mut self, key: &str, value: Datum) -> Option<Vec<String>> {
        match value.kind {
            DatumKind::Vector(items) => {
                Some(items.into_iter().filter_map(|item| self.string(key, item)).collect())
            }
            _ => self.expected(key, "a vector of strings such as [\"a\" \"b\"]", &value),
        }
    }

    /// Reads a symbol or a string.
    pub(super) fn name(&mut self, key: &str, value: &Datum) -> Option<String> {
        match word_of(value) {
            Some(word) => Some(word.to_owned()),
            None => self.expected(key, "a word", value),
        }
    }

    /// Reads one of `words`.
    pub(super) fn word<T: Copy>(&mut self, key: &str, value: &Datum, words: &[(&str, T)]) -> Option<T> {
        let name = self.name(key, value)?;
        let found = words.iter().find(|(word, _)| *word == name).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.unknown(value.span, &format!("`{key}` value"), &name, &known);
        }
        found
    }

    pub(super) fn count(&mut self, key: &str, value: &Datum) -> Option<u64> {
        match number_of(value).and_then(|number| u64::try_from(number).ok()).filter(|count| *count > 0) {
            Some(count) => Some(count),
            None => self.expected(key, "a positive integer", value),
        }
    }

    pub(super) fn duration(&mut self, key: &str, value: &Datum) -> Option<Duration> {
        let parsed = match &value.kind {
            DatumKind::String(text) => parse_duration(text),
            _ => None,
        };
        if parsed.is_none() {
            return self.expected(key, "a duration such as \"50ms\"", value);
        }
        parsed
    }

    /// Reads a string, a symbol or a number as text.
    pub(super) fn scalar(&mut self, key: &str, value: &Datum) -> Option<String> {
        match &value.kind {
            DatumKind::Number(number) => Some(number_text(*number)),
            _ => match word_of(value) {
                Some(word) => Some(word.to_owned()),
                None => self.expected(key, "a string or a number", value),
            },
        }
    }

    fn expected<T>(&mut self, key: &str, expected: &str, found: &Datum) -> Option<T> {
        if found.kind != DatumKind::Invalid {
            self.report(found.span, format!("`{key}` expects {expected}, found {}", found.describe()));
        }
        None
    }
}

/// Whether a constant is a list that starts with `head`.
pub(super) fn is_form(datum: &Datum, head: &str) -> bool {
    let DatumKind::List(items) = &datum.kind else { return false };
    items.first().and_then(word_of) == Some(head)
}

/// Returns the text of a symbol or a string.
pub(super) fn word_of(datum: &Datum) -> Option<&str> {
    match &datum.kind {
        DatumKind::Symbol(word) | DatumKind::String(word) => Some(word),
        _ => None,
    }
}

pub(super) fn number_of(datum: &Datum) -> Option<i64> {
    match datum.kind {
        DatumKind::Number(Number::Integer(number)) => Some(number),
        _ => None,
    }
}

/// Converts a constant to JSON like in specs: a plist is an object, a vector is an array, `t`, `:json-false` and
/// `:null` are true, false and null, and `nil` is `{}`. A `-` in a key is kept.
pub(super) fn json_of(datum: &Datum) -> Option<Value> {
    Some(match &datum.kind {
        DatumKind::String(text) => Value::String(text.clone()),
        DatumKind::Symbol(word) if word == "t" => Value::Bool(true),
        DatumKind::Keyword(word) => match word.as_str() {
            ":json-false" | ":false" => Value::Bool(false),
            ":null" | ":json-null" => Value::Null,
            _ => return None,
        },
        DatumKind::Number(Number::Integer(number)) => Value::from(*number),
        DatumKind::Number(Number::Unsigned(number)) => Value::from(*number),
        DatumKind::Number(Number::Float(number) | Number::Rounded(number)) => {
            Value::Number(JsonNumber::from_f64(*number)?)
        }
        DatumKind::Vector(items) => items.iter().map(json_of).collect::<Option<Value>>()?,
        DatumKind::List(items) => {
            let mut members = Map::new();
            for pair in items.chunks(2) {
                let [Datum { kind: DatumKind::Keyword(key), .. }, value] = pair else { return None };
                members.insert(key.trim_start_matches(':').to_owned(), json_of(value)?);
            }
            Value::Object(members)
        }
        _ => return None,
    })
}

/// Formats a number for a header.
fn number_text(number: Number) -> String {
    match number {
        Number::Integer(value) => value.to_string(),
        Number::Unsigned(value) => value.to_string(),
        Number::Float(value) | Number::Rounded(value) => value.to_string(),
    }
}
