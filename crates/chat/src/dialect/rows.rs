//! The tables of a dialect, as its spec form holds them. `deftool_lang::spec::reference` documents the keys.

use std::sync::OnceLock;
use std::time::Duration;

use deftool_lang::spec::{Api, read_dialects};
use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer};
use serde_json::{Map, Value};

use super::feature::{Feature, Support};
use crate::body::change::BodyFallback;
use crate::fallback::Family;
use crate::finish::FinishMeaning;

/// The keys of one `defdialect`, except its name.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Rows {
    pub(super) title: Option<String>,
    pub(super) like: Option<String>,
    pub(super) hosts: Vec<String>,
    pub(super) model_names: Vec<String>,
    pub(super) probes: Vec<Probe>,
    pub(super) details: Option<Details>,
    pub(super) local: Option<bool>,
    pub(super) native_calls: Option<bool>,
    pub(super) api: Option<Api>,
    pub(super) provider: Option<String>,
    pub(super) reasoning: Option<ReasoningScope>,
    pub(super) image_limits: Option<ImageLimits>,
    pub(super) features: Vec<FeatureRow>,
    pub(super) finish: Vec<FinishRow>,
    pub(super) models: Vec<ModelRow>,
    pub(super) source: Option<String>,
    #[serde(skip)]
    pub(super) after_errors: AfterErrors,
}

/// The rows that are needed after an error: half of the built-in text, which is read then.
#[derive(Debug, Default, PartialEq)]
pub(super) struct AfterErrors {
    rows: OnceLock<ErrorRows>,
    /// The built-in text, and the name of the dialect in it.
    text: Option<(&'static str, String)>,
}

/// The keys of [`AfterErrors`].
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct ErrorRows {
    pub(super) errors: Vec<ErrorRow>,
    pub(super) delays: Vec<DelayRow>,
}

impl ErrorRows {
    /// Whether a key is one of them.
    pub(super) fn has(key: &str) -> bool {
        matches!(key, "errors" | "delays")
    }
}

impl Rows {
    pub(super) fn errors(&self) -> &[ErrorRow] {
        &self.after_errors.read().errors
    }

    pub(super) fn delays(&self) -> &[DelayRow] {
        &self.after_errors.read().delays
    }
}

impl AfterErrors {
    /// The rows in the built-in dialect `name` of `text`.
    pub(super) fn built_in(text: &'static str, name: &str) -> Self {
        Self { rows: OnceLock::new(), text: Some((text, name.to_owned())) }
    }

    pub(super) fn read(&self) -> &ErrorRows {
        self.rows.get_or_init(|| {
            let found = self.text.as_ref().and_then(|(text, name)| {
                let dialects = read_dialects(text, |key| key == "name" || ErrorRows::has(key));
                dialects.into_iter().find(|dialect| dialect.name.value == *name)
            });
            found.map(|dialect| read_rows(dialect.rows)).unwrap_or_default()
        })
    }
}

impl From<ErrorRows> for AfterErrors {
    fn from(rows: ErrorRows) -> Self {
        Self { rows: OnceLock::from(rows), text: None }
    }
}

/// Reads tables. The form was read by the same keys: see the test `every_key_of_the_language_is_read`.
pub(super) fn read_rows<T: DeserializeOwned + Default>(rows: Map<String, Value>) -> T {
    serde_json::from_value(Value::Object(rows)).unwrap_or_default()
}

/// What only one server program answers: a header or an owner in the list of models, or a page.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Probe {
    /// The `Server` header.
    pub header: Option<String>,
    /// `owned_by` of the first model.
    pub owner: Option<String>,
    /// A page beside the API.
    pub page: Option<String>,
    /// The JSON pointer to a member of the page.
    pub has: Option<String>,
}

/// The server program whose pages describe a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // named after the programs
pub enum Details {
    LlamaCpp,
    Ollama,
    LmStudio,
}

/// How long a server or model reads the reasoning of earlier replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReasoningScope {
    Always,
    UntilNextPrompt,
}

/// The images of one request. A missing limit does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ImageLimits {
    /// Maximum size of an image in base64, in bytes.
    pub(crate) size: u64,
    /// Maximum width and height of an image, in pixels.
    #[serde(default = "any_side")]
    pub(crate) side: u32,
    /// Maximum number of images.
    pub(crate) count: usize,
    /// A number of images. With more of them, none may have more than `many_side` pixels in width or height.
    pub(crate) many: Option<usize>,
    #[serde(default = "any_side")]
    pub(crate) many_side: u32,
    /// Maximum size of all images in base64, in bytes.
    pub(crate) total: u64,
}

fn any_side() -> u32 {
    u32::MAX
}

/// A known property of a server.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FeatureRow {
    /// The feature.
    pub feature: Feature,
    /// The server's support.
    pub support: Support,
    /// The exact behaviour, as a clause.
    #[serde(default)]
    pub detail: String,
    /// The source of the fact.
    #[serde(default)]
    pub source: String,
}

/// What an error means, or what helps after it.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ErrorRow {
    /// Texts that all occur.
    pub says: Vec<String>,
    /// Texts of which one occurs.
    pub any: Vec<String>,
    /// Parts of the names of members, of which one is reported as unknown.
    pub unknown_member: Vec<String>,
    /// The status: one of these.
    pub status: Vec<u16>,
    /// The code: one of these.
    pub code: Vec<String>,
    /// The meaning.
    pub means: Option<ErrorMeaning>,
    /// The changes to the request that may help, the most likely first.
    #[serde(deserialize_with = "words")]
    pub send: Vec<BodyFallback>,
    /// The source.
    pub source: String,
    /// What the server sends.
    pub example: Option<Example>,
}

/// What an error means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorMeaning {
    /// The prompt is larger than the context.
    Overflow,
    /// The quota is used up.
    Quota,
    /// The server has too much to do.
    Busy,
    /// The server failed, and a hosted one may succeed later.
    Temporary,
    /// The server loads its model.
    Loading,
    /// The key is missing or wrong.
    Unauthorized,
    /// A member of the request is rejected.
    Rejected,
    /// The server could not parse the call that its model wrote.
    UnparsedCall,
    /// The model or its server takes no tools.
    NoTools,
}

/// What a server sends.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Example {
    /// The HTTP status.
    #[serde(default = "bad_request")]
    pub status: u16,
    message: Option<String>,
    code: Option<String>,
    r#type: Option<String>,
    body: Option<Value>,
    /// The delay that the body names.
    #[serde(default, deserialize_with = "seconds")]
    pub wait: Option<Duration>,
}

fn bad_request() -> u16 {
    400
}

impl Example {
    /// Returns the body.
    pub fn body(&self) -> Value {
        self.body.clone().unwrap_or_else(|| {
            serde_json::json!({"error": {"message": self.message, "type": self.r#type, "code": self.code}})
        })
    }
}

/// What finish reasons mean.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct FinishRow {
    pub(super) reasons: Vec<String>,
    pub(super) means: FinishMeaning,
    #[serde(default)]
    pub(super) source: String,
}

/// Where an error names a delay.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DelayRow {
    /// The text before the delay.
    pub says: Option<String>,
    /// The member that holds the delay.
    pub member: Option<String>,
    /// The source.
    #[serde(default)]
    pub source: String,
    /// What the server sends.
    pub example: Option<Example>,
}

/// What is known of models.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct ModelRow {
    pub(super) names: Vec<String>,
    #[serde(deserialize_with = "words")]
    pub(super) forms: Vec<Family>,
    pub(super) call_ids: Option<CallIds>,
    pub(super) reasoning: Option<ReasoningScope>,
    pub(super) max_output: Option<u64>,
    pub(super) source: String,
}

/// The ids of calls that the servers of a model take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CallIds {
    /// At most 40 bytes; 64 in the Responses API.
    FortyBytes,
    /// `[a-zA-Z0-9_-]`, at most 64.
    Name,
    /// Nine of `[a-zA-Z0-9]`, which every server accepts.
    NineLetters,
}

/// Reads words such as `system-first` as values that recordings name `system_first`.
fn words<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let word = |name: String| {
        let name = name.replace('-', "_");
        let word: StrDeserializer<'_, D::Error> = name.as_str().into_deserializer();
        T::deserialize(word)
    };
    names.into_iter().map(word).collect()
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    Ok(Duration::try_from_secs_f64(f64::deserialize(deserializer)?).ok())
}
