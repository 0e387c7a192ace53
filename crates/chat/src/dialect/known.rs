//! The known dialects: those that are built in, and those of users.

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use deftool_lang::spec::{self, Api, DialectSpec};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Map;

use super::feature::Feature;
use super::rows::{
    AfterErrors, CallIds, DelayRow, Details, ErrorRow, ErrorRows, FeatureRow, ImageLimits, ModelRow, Probe,
    ReasoningScope, Rows, read_rows,
};
use crate::fallback::{FormSet, Forms};
use crate::finish::FinishMeaning;

/// What a vendor or server program does. Dialects live as long as the program.
#[derive(Clone, Copy)]
pub struct Dialect(&'static Known);

impl Dialect {
    /// Returns the built-in dialect with this name, or `openai`.
    pub fn named(name: &str) -> Self {
        Dialects::built_in().named(name).unwrap_or_default()
    }

    /// The name.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// Whether the server has no other dialect.
    pub fn is_default(self) -> bool {
        self.name() == BASE
    }

    /// The name in messages.
    pub fn title(self) -> &'static str {
        self.own().find_map(|rows| rows.title.as_deref()).unwrap_or(self.name())
    }

    /// Where the dialect is documented.
    pub fn source(self) -> &'static str {
        self.own().find_map(|rows| rows.source.as_deref()).unwrap_or_default()
    }

    /// The hosts of the vendor. A leading dot matches every host of the domain.
    pub fn hosts(self) -> impl Iterator<Item = &'static String> {
        self.own().flat_map(|rows| &rows.hosts)
    }

    /// What only this server program answers.
    pub fn probes(self) -> impl Iterator<Item = &'static Probe> {
        self.own().flat_map(|rows| &rows.probes)
    }

    /// The server program whose pages describe a model.
    pub fn details(self) -> Option<Details> {
        self.first(|rows| rows.details)
    }

    /// Whether the server is a program on the user's machine, whose errors are usually permanent.
    pub fn is_local(self) -> bool {
        self.first(|rows| rows.local).unwrap_or(false)
    }

    /// Whether the server returns all calls itself, so that none is read from text.
    pub fn has_native_calls(self) -> bool {
        self.first(|rows| rows.native_calls).unwrap_or(false)
    }

    /// The API of a worker without one.
    pub fn api(self) -> Option<Api> {
        self.first(|rows| rows.api)
    }

    /// The name of the provider in the conventions of telemetry.
    pub fn provider(self) -> &'static str {
        self.first(|rows| rows.provider.as_deref()).unwrap_or_default()
    }

    /// The rows about features, each feature once.
    pub fn features(self) -> impl Iterator<Item = &'static FeatureRow> {
        self.own().flat_map(|rows| &rows.features)
    }

    /// The row about a feature. A server program inherits none from `openai`.
    pub fn feature(self, feature: Feature) -> Option<&'static FeatureRow> {
        let program = self.layers().position(|rows| rows.local == Some(true));
        let layers = self.layers().take(program.map_or(usize::MAX, |at| at + 1));
        layers.flat_map(|rows| &rows.features).find(|row| row.feature == feature)
    }

    /// The rows about errors of this dialect alone.
    pub fn own_errors(self) -> impl Iterator<Item = &'static ErrorRow> {
        self.own().flat_map(Rows::errors)
    }

    /// The rows about delays of this dialect alone.
    pub fn own_delays(self) -> impl Iterator<Item = &'static DelayRow> {
        self.own().flat_map(Rows::delays)
    }

    /// The finish reasons of this dialect alone, with their meanings and sources.
    pub fn own_finish_reasons(
        self,
    ) -> impl Iterator<Item = (&'static [String], FinishMeaning, &'static str)> {
        let rows = self.own().flat_map(|rows| &rows.finish);
        rows.map(|row| (row.reasons.as_slice(), row.means, row.source.as_str()))
    }

    /// The meaning of a finish reason. Gemini's compatible API sends its own after a category, as in
    /// `content_filter: SAFETY`.
    pub fn finish_meaning(self, reason: &str) -> Option<FinishMeaning> {
        let meaning = |part: &str| {
            let is_it = |known: &String| known.eq_ignore_ascii_case(part);
            let rows = self.layers().chain(Dialects::built_in().layers()).flat_map(|rows| &rows.finish);
            rows.into_iter().find(|row| row.reasons.iter().any(is_it)).map(|row| row.means)
        };
        reason.split(':').map(str::trim).find_map(meaning)
    }

    /// How long the server or the model reads the reasoning of earlier replies.
    pub(crate) fn reasoning_scope(self, model: &str) -> ReasoningScope {
        let of_server = self.first(|rows| rows.reasoning);
        let of_model = || self.of_model(model).find_map(|row| row.reasoning);
        of_server.or_else(of_model).unwrap_or(ReasoningScope::Always)
    }

    /// The images of one request: those of the server, otherwise of the model's vendor.
    pub(crate) fn image_limits(self, model: &str) -> Option<ImageLimits> {
        let own = self.own().filter(|_| !self.is_default()).find_map(|rows| rows.image_limits);
        let of_vendor = || Dialects::built_in().of_model(model)?.own().find_map(|rows| rows.image_limits);
        own.or_else(of_vendor).or_else(|| self.first(|rows| rows.image_limits))
    }

    /// The ids of calls that the servers of a model take; `None`: any.
    pub(crate) fn call_ids(self, model: &str) -> Option<CallIds> {
        self.of_model(model).find_map(|row| row.call_ids)
    }

    /// The largest reply of a model, in tokens.
    pub fn max_output(self, model: &str) -> Option<u64> {
        self.of_model(model).find_map(|row| row.max_output)
    }

    /// The forms in which the models with this name write calls as text.
    pub fn text_forms(self, model: &str) -> FormSet {
        self.of_model(model).flat_map(|row| row.forms.iter().copied()).collect()
    }

    /// Returns the forms of calls written as text that are read. `reported`: the forms of the model's names and template
    /// that its server reports.
    pub fn forms(self, model: &str, reported: FormSet) -> Forms {
        Forms::of(self.text_forms(model).union(reported), self.has_native_calls())
    }

    /// Returns the rows about the models with this name: those of the dialect, then those of all.
    fn of_model(self, model: &str) -> impl Iterator<Item = &'static ModelRow> {
        let rows = self.layers().chain(Dialects::built_in().layers()).flat_map(|rows| &rows.models);
        rows.filter(move |row| row.names.iter().any(|name| begins_word(model, name)))
    }

    /// The tables of the dialect alone: those of a user, then those that are built in.
    pub(super) fn own(self) -> impl Iterator<Item = &'static Rows> {
        self.layers().take(self.0.own)
    }

    pub(super) fn layers(self) -> impl Iterator<Item = &'static Rows> {
        self.0.layers.iter().map(AsRef::as_ref)
    }

    /// Returns the first value in the tables of the dialect and of those that it is like.
    fn first<T>(self, value: impl Fn(&'static Rows) -> Option<T>) -> Option<T> {
        self.layers().find_map(value)
    }
}

/// Whether a word of `name` begins with `start`, in any case. Versions are written with dots or dashes.
fn begins_word(name: &str, start: &str) -> bool {
    let is_equal =
        |(a, b): (&u8, &u8)| a.eq_ignore_ascii_case(b) || matches!((a, b), (b'.', b'-') | (b'-', b'.'));
    let name = name.as_bytes();
    let is_start =
        |at: usize| !at.checked_sub(1).and_then(|at| name.get(at)).is_some_and(u8::is_ascii_alphanumeric);
    let mut words = name.windows(start.len().max(1)).enumerate().filter(|(at, _)| is_start(*at));
    !start.is_empty() && words.any(|(_, word)| word.iter().zip(start.as_bytes()).all(is_equal))
}

impl Default for Dialect {
    fn default() -> Self {
        Dialects::built_in().default_dialect()
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Dialect {}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Dialect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Reads the name of a dialect. One that this program does not know counts as `openai`.
impl<'de> Deserialize<'de> for Dialect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Ok(known(&name).unwrap_or_default())
    }
}

/// The built-in tables, one file for each vendor or server program.
pub(super) const FILES: [&str; 18] = [
    include_str!("../../dialects/openai.eld"),
    include_str!("../../dialects/llama-cpp.eld"),
    include_str!("../../dialects/lm-studio.eld"),
    include_str!("../../dialects/ollama.eld"),
    include_str!("../../dialects/vllm.eld"),
    include_str!("../../dialects/sglang.eld"),
    include_str!("../../dialects/openrouter.eld"),
    include_str!("../../dialects/anthropic.eld"),
    include_str!("../../dialects/gemini.eld"),
    include_str!("../../dialects/mistral.eld"),
    include_str!("../../dialects/deepseek.eld"),
    include_str!("../../dialects/kimi.eld"),
    include_str!("../../dialects/glm.eld"),
    include_str!("../../dialects/minimax.eld"),
    include_str!("../../dialects/qwen.eld"),
    include_str!("../../dialects/xai.eld"),
    include_str!("../../dialects/others.eld"),
    include_str!("../../dialects/any.eld"),
];

/// The dialect of a server without another one.
const BASE: &str = "openai";

/// The dialect whose rows come last on every server.
pub(super) const ANY: &str = "any";

/// A dialect: its own tables, then those of the dialects that it is like.
#[derive(Debug, PartialEq)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) layers: Vec<Arc<Rows>>,
    /// The number of its own tables.
    pub(super) own: usize,
}

/// Dialects in the order in which they are searched.
#[derive(Debug, Clone)]
pub struct Dialects {
    all: Vec<Dialect>,
}

impl Dialects {
    /// The built-in dialects. They are read when they are first used.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Dialects> =
            LazyLock::new(|| Dialects::of(&FILES.iter().flat_map(|text| read(text)).collect::<Vec<_>>()));
        &BUILT_IN
    }

    /// Returns these dialects of a user, then the built-in ones. The rows of a dialect with the name of a built-in one
    /// come before its own.
    pub fn with(own: &[DialectSpec]) -> Self {
        if own.is_empty() {
            return Self::built_in().clone();
        }
        let mut tables: Vec<NamedRows> = own.iter().map(rows_of).collect();
        for dialect in &Self::built_in().all {
            tables.extend(dialect.0.layers.first().map(|rows| (dialect.0.name.clone(), Arc::clone(rows))));
        }
        Self::of(&tables)
    }

    /// `tables`: the rows of each dialect, those that come first before others of the same name.
    fn of(tables: &[NamedRows]) -> Self {
        let mut all: Vec<Dialect> = Vec::new();
        for (name, _) in tables {
            if !all.iter().any(|known| known.name() == name) {
                let own = tables.iter().filter(|(known, _)| known == name).count();
                all.push(Dialect(intern(Known { name: name.clone(), layers: layers(tables, name), own })));
            }
        }
        Self { all }
    }

    /// Returns all dialects.
    pub fn iter(&self) -> impl Iterator<Item = Dialect> {
        self.all.iter().copied()
    }

    /// Returns the dialect with this name.
    pub fn named(&self, name: &str) -> Option<Dialect> {
        self.iter().find(|dialect| dialect.name() == name)
    }

    /// Returns the dialect with this host.
    pub fn of_host(&self, host: &str) -> Option<Dialect> {
        let is_it = |known: &String| match known.strip_prefix('.') {
            Some(_) => host.ends_with(known.as_str()),
            None => host == known,
        };
        self.iter().find(|dialect| dialect.hosts().any(is_it))
    }

    /// Returns the dialect of the vendor of a model.
    pub fn of_model(&self, model: &str) -> Option<Dialect> {
        let is_it = |name: &String| begins_word(model, name);
        self.iter().find(|dialect| dialect.own().flat_map(|rows| &rows.model_names).any(is_it))
    }

    /// Returns the probes of all dialects.
    pub fn probes(&self) -> impl Iterator<Item = (Dialect, &'static Probe)> {
        self.iter().flat_map(|dialect| dialect.probes().map(move |probe| (dialect, probe)))
    }

    /// Returns the tables of each dialect alone. Those of `any` come last.
    pub(super) fn layers(&self) -> impl Iterator<Item = &'static Rows> {
        self.iter().flat_map(Dialect::own)
    }

    /// Returns the dialect of a server without another one.
    pub fn default_dialect(&self) -> Dialect {
        static NONE: LazyLock<Known> =
            LazyLock::new(|| Known { name: String::from(BASE), layers: Vec::new(), own: 0 });
        self.named(BASE).unwrap_or(Dialect(&NONE))
    }
}

impl Default for Dialects {
    fn default() -> Self {
        Self::built_in().clone()
    }
}

/// The tables of one form, under its name.
type NamedRows = (String, Arc<Rows>);

/// Reads the dialects of a built-in file.
fn read(text: &'static str) -> impl Iterator<Item = NamedRows> {
    let forms = spec::read_dialects(text, |key| !ErrorRows::has(key)).into_iter();
    forms.map(move |DialectSpec { name, rows, .. }| {
        let after_errors = AfterErrors::built_in(text, &name.value);
        (name.value, Arc::new(Rows { after_errors, ..read_rows(rows) }))
    })
}

/// Returns the tables of a user's form.
fn rows_of(spec: &DialectSpec) -> NamedRows {
    let (after_errors, rows): (Map<_, _>, _) =
        spec.rows.clone().into_iter().partition(|(key, _)| ErrorRows::has(key));
    let after_errors = read_rows::<ErrorRows>(after_errors).into();
    (spec.name.value.clone(), Arc::new(Rows { after_errors, ..read_rows(rows) }))
}

/// Returns the tables of `name`, then those of the dialects that it is like.
fn layers(tables: &[NamedRows], name: &str) -> Vec<Arc<Rows>> {
    let mut layers = Vec::new();
    let mut names = vec![name];
    while let Some(name) = names.last().copied() {
        let own = tables.iter().filter(|(known, _)| known == name).map(|(_, rows)| rows);
        let start = layers.len();
        layers.extend(own.cloned());
        let like = layers.iter().skip(start).find_map(|rows: &Arc<Rows>| rows.like.clone());
        let like = like.unwrap_or_else(|| String::from(BASE));
        match tables.iter().find(|(known, _)| *known == like) {
            Some((next, _)) if !names.contains(&next.as_str()) => names.push(next),
            _ => break,
        }
    }
    layers
}

/// Every dialect of this process. Equal ones are stored once, so that a project that is loaded again needs no memory.
static INTERNED: Mutex<Vec<&'static Known>> = Mutex::new(Vec::new());

fn intern(dialect: Known) -> &'static Known {
    let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = interned.iter().find(|known| ***known == dialect) {
        return known;
    }
    let known: &'static Known = Box::leak(Box::new(dialect));
    interned.push(known);
    known
}

/// Returns the dialect with this name that was used last.
pub(super) fn known(name: &str) -> Option<Dialect> {
    Dialects::built_in().named(name).or_else(|| {
        let interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
        interned.iter().rev().find(|known| known.name == name).map(|known| Dialect(known))
    })
}
