//! What a server says of itself, asked for a person: whether it answers, which models it has, whose it is, and what it
//! knows of its context and its chat template. No model is asked anything.
//!
//! A request takes an endpoint at its word and reports what comes of it ([`find_endpoint`](super::find_endpoint));
//! here every way in which a base URL is wrong has its own word. `max_model_len` as vLLM lists it.

use std::time::Duration;

use reqwest::Url;
use serde_json::Value;

use super::detect::{Detected, at_a_glance, detect, is_version};
use super::http::{build_client, endpoint_url};
use super::probe::{Answer, ProbeError, Prober};
use super::redact::Redactor;
use crate::spec::Dialect;
use crate::text::one_line;

/// More models than this are not looked through.
const MAX_MODELS: usize = 10_000;

/// What was found at an endpoint.
#[derive(Debug, Clone)]
pub struct Examination {
    /// Its models, or why there is no list.
    pub models: Result<Vec<Model>, ProbeError>,
    /// Whose it is, and what it told of itself.
    pub found: Detected,
    /// What it says it is, where that is not what it was said to be.
    pub contradicts: Option<Detected>,
}

/// A model that a server lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Its name, without control characters.
    pub id: String,
    /// Its context in tokens, where the list says it.
    pub context: Option<u64>,
}

/// What is asked for.
#[derive(Clone, Copy, Default)]
pub struct ExamineOptions<'a> {
    /// The API key. It goes to that host alone, and is taken out of what comes back.
    pub key: Option<&'a str>,
    /// The model that is used; `None`: the first.
    pub model: Option<&'a str>,
    /// Whose server it is, where that is said.
    pub dialect: Option<Dialect>,
}

/// Without the key.
impl std::fmt::Debug for ExamineOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key: _, model, dialect } = self;
        f.debug_struct("ExamineOptions")
            .field("model", model)
            .field("dialect", dialect)
            .finish_non_exhaustive()
    }
}

/// Asks the base URL `base` (`/v1` included). Each question may take `limit`.
pub async fn examine_endpoint(base: &str, options: ExamineOptions<'_>, limit: Duration) -> Examination {
    let failed = |error| Examination { models: Err(error), found: Detected::default(), contradicts: None };
    let redactor = Redactor::new(options.key);
    let url = match endpoint_url(base, "models") {
        Ok(url) => url,
        Err(error) => return failed(ProbeError::Invalid(redactor.text(&one_line(error)))),
    };
    let client = match build_client(&url, limit) {
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
            Err(look_deeper(&prober, base, shown).await.unwrap_or_else(|| status(&prober, &answer)))
        }
        models => models,
    };
    // What does not answer like an API is not asked for more.
    let Some(base) = base_url(&url).filter(|_| models.is_ok()) else {
        return Examination { models, found: Detected::default(), contradicts: None };
    };
    let found = detect(&prober, &base, Some(&answer), options.model, options.dialect).await;
    let says = options.dialect.and_then(|_| at_a_glance(&base, Some(&answer)));
    let contradicts = says.filter(|says| says.server.dialect != found.server.dialect);
    Examination { models, found, contradicts }
}

/// The base of its list of models.
fn base_url(models: &Url) -> Option<Url> {
    let mut base = models.clone();
    base.path_segments_mut().ok()?.pop();
    Some(base)
}

/// Whether the path has a part like `v1` or `v1beta`.
fn has_version(url: &Url) -> bool {
    url.path_segments().into_iter().flatten().any(is_version)
}

/// Whether what is not at `base` is a level deeper.
async fn look_deeper(prober: &Prober, base: &str, url: String) -> Option<ProbeError> {
    let deeper = endpoint_url(base, "v1/models").ok()?;
    let answer = prober.get(&deeper).await.ok()?;
    let is_there = matches!(answer.status, 401 | 403) || models(&answer, prober).is_ok();
    is_there.then_some(ProbeError::LacksV1 { url, url_with_v1: answer.url })
}

fn status(prober: &Prober, answer: &Answer) -> ProbeError {
    ProbeError::Status { url: answer.url.clone(), status: answer.status, said: prober.said(answer) }
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
        // Ollama without a model.
        Some(Value::Null) => &[],
        Some(_) => return Err(no_list("JSON of another shape")),
        None if answer.is_html => return Err(no_list("a web page")),
        None if answer.is_empty => return Err(no_list("nothing")),
        None if answer.body.is_null() => return Err(no_list("no JSON")),
        None => return Err(no_list("JSON of another shape")),
    };
    let model = |model: &Value| {
        let id = prober.clean(model.get("id")?.as_str()?);
        Some(Model { id, context: model.get("max_model_len").and_then(Value::as_u64) })
    };
    Ok(list.iter().take(MAX_MODELS).filter_map(model).collect())
}
