//! Examines a server for diagnostics: whether it answers, its models, its dialect, its context size and the features of
//! its chat template. Sends no prompt to a model.
//!
//! [`find_endpoint`](super::find_endpoint) does not check an endpoint: the first request reports its errors. This
//! module has a specific error for each kind of wrong base URL.

use std::time::Duration;

use deftool_chat::{Dialect, Dialects};
use deftool_lang::text::one_line;
use deftool_record::Redactor;
use reqwest::Url;
use serde_json::Value;

use super::detect::{Detected, detect, detect_without_probing};
use crate::transport::{Answer, ProbeError, Prober, endpoint_url, http_client, is_version};

/// Maximum number of models that are read.
const MAX_MODELS: usize = 10_000;

/// The result of [`examine_endpoint`].
#[derive(Debug, Clone)]
pub struct Examination {
    /// The models, or the error of the list.
    pub models: Result<Vec<Model>, ProbeError>,
    /// The dialect and the capabilities.
    pub found: Detected,
    /// The detected server, if it differs from the configured dialect.
    pub contradicts: Option<Detected>,
}

/// A model in a server's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Its name, without control characters.
    pub id: String,
    /// Context size in tokens, if the list contains it (`max_model_len` of vLLM).
    pub context: Option<u64>,
}

/// Options of [`examine_endpoint`].
#[derive(Clone, Copy, Default)]
pub struct ExamineOptions<'a> {
    /// The API key. It is sent only to the examined server, and redacted in responses.
    pub key: Option<&'a str>,
    /// The model in use; `None`: the first.
    pub model: Option<&'a str>,
    /// The configured dialect.
    pub dialect: Option<Dialect>,
    /// The dialects that are detected.
    pub dialects: Option<&'a Dialects>,
}

/// Does not print the key.
impl std::fmt::Debug for ExamineOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key: _, model, dialect, dialects: _ } = self;
        f.debug_struct("ExamineOptions")
            .field("model", model)
            .field("dialect", dialect)
            .finish_non_exhaustive()
    }
}

/// Examines the server at the base URL `base` (including `/v1`). `limit` applies to each request.
pub async fn examine_endpoint(base: &str, options: ExamineOptions<'_>, limit: Duration) -> Examination {
    let failed = |error| Examination { models: Err(error), found: Detected::default(), contradicts: None };
    let redactor = Redactor::new(options.key);
    let url = match endpoint_url(base, "models") {
        Ok(url) => url,
        Err(error) => return failed(ProbeError::Invalid(redactor.text(&one_line(error)))),
    };
    let client = match http_client(&url, limit) {
        Ok(client) => client,
        Err(error) => return failed(ProbeError::Invalid(one_line(error))),
    };
    let prober = Prober::new(client, &url, options.key, limit);
    let answer = match prober.get(&url).await {
        Ok(answer) => answer,
        Err(error) => return failed(error),
    };
    let models = match models(&answer, &prober) {
        Err(ProbeError::Status { url: shown, status: 404, .. }) if !has_version(&url) => {
            Err(probe_v1(&prober, base, shown).await.unwrap_or_else(|| status(&prober, &answer)))
        }
        models => models,
    };
    // Without a list of models, the server is not probed further.
    let Some(base) = base_url(&url).filter(|_| models.is_ok()) else {
        return Examination { models, found: Detected::default(), contradicts: None };
    };
    let dialects = options.dialects.unwrap_or(Dialects::built_in());
    let found = detect(dialects, &prober, &base, Some(&answer), options.model, options.dialect).await;
    let detected = options.dialect.and_then(|_| detect_without_probing(dialects, &base, Some(&answer)));
    let contradicts = detected.filter(|detected| detected.server.dialect != found.server.dialect);
    Examination { models, found, contradicts }
}

/// Returns the base URL for the URL of a list of models.
fn base_url(models: &Url) -> Option<Url> {
    let mut base = models.clone();
    base.path_segments_mut().ok()?.pop();
    Some(base)
}

/// Whether the path has a segment like `v1` or `v1beta`.
fn has_version(url: &Url) -> bool {
    url.path_segments().into_iter().flatten().any(is_version)
}

/// Returns the error to report if the API is at `{base}/v1`.
async fn probe_v1(prober: &Prober, base: &str, url: String) -> Option<ProbeError> {
    let deeper = endpoint_url(base, "v1/models").ok()?;
    let answer = prober.get(&deeper).await.ok()?;
    let is_there = matches!(answer.status, 401 | 403) || models(&answer, prober).is_ok();
    is_there.then_some(ProbeError::LacksV1 { url, url_with_v1: answer.url })
}

fn status(prober: &Prober, answer: &Answer) -> ProbeError {
    ProbeError::Status {
        url: answer.url.clone(),
        status: answer.status,
        message: prober.error_message(answer),
    }
}

fn models(answer: &Answer, prober: &Prober) -> Result<Vec<Model>, ProbeError> {
    let (url, code) = (answer.url.clone(), answer.status);
    match code {
        200..=299 => {}
        300..=399 if !answer.location.is_empty() => {
            return Err(ProbeError::Redirect { url, status: code, location: answer.location.clone() });
        }
        401 | 403 => {
            return Err(ProbeError::Unauthorized { url, status: code, sent: prober.credentials() });
        }
        _ => return Err(status(prober, answer)),
    }
    let no_list = |found| ProbeError::NoList { url: url.clone(), found };
    let list = match answer.body.get("data") {
        Some(Value::Array(list)) => list.as_slice(),
        // Ollama without models.
        Some(Value::Null) => &[],
        Some(_) => return Err(no_list("JSON of an unexpected shape")),
        None if answer.is_html => return Err(no_list("a web page")),
        None if answer.is_empty => return Err(no_list("an empty body")),
        None if answer.body.is_null() => return Err(no_list("a body that is not JSON")),
        None => return Err(no_list("JSON of an unexpected shape")),
    };
    let model = |model: &Value| {
        let id = prober.clean(model.get("id")?.as_str()?);
        Some(Model { id, context: model.get("max_model_len").and_then(Value::as_u64) })
    };
    Ok(list.iter().take(MAX_MODELS).filter_map(model).collect())
}
