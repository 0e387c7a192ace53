//! Where the model is: what was configured, what the environment says, what listens on this machine.

use std::time::Duration;

use reqwest::{Client, Url};

use super::detect::{Detected, Evidence, detect, of_host};
use super::http::{build_client, endpoint_url};
use super::probe::{Answer, Prober};
use super::redact::Redactor;
use crate::chat::Capabilities;
use crate::spec::Dialect;

/// Tried in order when nothing is configured: llama.cpp's default port, then Ollama's.
const LOCAL: [&str; 2] = ["http://127.0.0.1:8080/v1", "http://127.0.0.1:11434/v1"];

/// A server that does not answer a probe in this time is asked nothing more.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// One that answered is asked for more, and need not answer that.
const MORE_LIMIT: Duration = Duration::from_secs(2);

/// The model's name where no server told one; servers with a single model take any.
const ANY_MODEL: &str = "default";

/// What is known of the endpoint before it is asked.
#[derive(Clone)]
pub struct EndpointOptions {
    /// Base URL, `/v1` included; from the command line, the spec, or `OPENAI_BASE_URL`.
    pub endpoint: Option<String>,
    /// The model's name, from the command line or the spec.
    pub model: Option<String>,
    /// The API key.
    pub key: Option<String>,
    /// Limit of TCP and TLS.
    pub connect: Duration,
    /// Whose server it is, where the spec says it.
    pub dialect: Option<Dialect>,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        let connect = crate::spec::Timers::default().connect;
        Self { endpoint: None, model: None, key: None, connect, dialect: None }
    }
}

/// Without the key.
impl std::fmt::Debug for EndpointOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { endpoint, model, key: _, connect, dialect } = self;
        f.debug_struct("EndpointOptions")
            .field("endpoint", endpoint)
            .field("model", model)
            .field("connect", connect)
            .field("dialect", dialect)
            .finish_non_exhaustive()
    }
}

/// An endpoint to send requests to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Base URL.
    pub base: String,
    /// The model's name.
    pub model: String,
    /// Whose server it is, and what it told of itself.
    pub found: Detected,
}

/// No endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Nothing was configured and nothing listens.
    #[error(
        "no endpoint: give --endpoint URL, set OPENAI_BASE_URL or the worker's :endpoint, or start a server on \
         127.0.0.1:8080 (llama.cpp) or 127.0.0.1:11434 (Ollama)"
    )]
    NotFound,
    /// What was configured cannot be one.
    #[error("{0}")]
    Invalid(String),
}

/// Settles endpoint, model and dialect. A configured endpoint is taken at its word: if it does not answer, the
/// request says so.
///
/// # Errors
/// When nothing is configured and nothing listens, or the URL is none.
pub async fn find_endpoint(options: EndpointOptions) -> Result<Endpoint, EndpointError> {
    if let Some(base) = &options.endpoint {
        let url = endpoint_url(base, "models").map_err(EndpointError::Invalid)?;
        let client = build_client(&url, options.connect).map_err(EndpointError::Invalid)?;
        // A hosted API with a named model has nothing to tell that would be worth a round trip.
        let known = options.dialect.or_else(|| of_host(&url));
        if url.scheme() == "https"
            && options.model.is_some()
            && let Some(dialect) = known.filter(|dialect| !is_local(*dialect))
        {
            let evidence = if options.dialect.is_some() { Evidence::Told } else { Evidence::Host };
            let found = Detected { server: Capabilities::of(dialect), evidence };
            return Ok(settle(base.clone(), &options, None, found));
        }
        let prober = prober(client, &options, options.key.as_deref());
        let models = prober.get(&url).await.ok();
        return Ok(ask_more(base, prober, &options, models).await);
    }
    for base in LOCAL {
        let url = endpoint_url(base, "models").map_err(EndpointError::Invalid)?;
        let client = build_client(&url, Duration::from_millis(300)).map_err(EndpointError::Invalid)?;
        // Many a program listens on such a port; only a model server is taken for one, and told the key.
        let mut prober = prober(client, &options, None);
        if let Some(models) = prober.get(&url).await.ok().filter(is_model_server) {
            prober.key = options.key.as_deref();
            return Ok(ask_more(base, prober, &options, Some(models)).await);
        }
    }
    Err(EndpointError::NotFound)
}

/// Servers that tell more of themselves than the API has.
fn is_local(dialect: Dialect) -> bool {
    match dialect {
        Dialect::LlamaCpp | Dialect::Ollama | Dialect::LmStudio => true,
        Dialect::OpenAi | Dialect::Vllm | Dialect::OpenRouter => false,
    }
}

fn prober<'k>(client: Client, options: &EndpointOptions, key: Option<&'k str>) -> Prober<'k> {
    let key = key.filter(|key| key.bytes().all(|byte| byte.is_ascii_graphic()));
    Prober { client, key, redactor: Redactor::new(options.key.as_deref()), limit: PROBE_LIMIT }
}

/// Finds out whose server it is, if somebody answered.
async fn ask_more(
    base: &str,
    mut prober: Prober<'_>,
    options: &EndpointOptions,
    models: Option<Answer>,
) -> Endpoint {
    prober.limit = MORE_LIMIT;
    let first = models.as_ref().and_then(|models| first_model(models, &prober.redactor));
    let model = options.model.as_deref().or(first.as_deref());
    let found = match (Url::parse(base.trim()), &models) {
        (Ok(url), Some(models)) => detect(&prober, &url, Some(models), model, options.dialect).await,
        // Nobody answers: nothing is asked again.
        (Ok(_), None) | (Err(_), _) => match options.dialect {
            Some(dialect) => Detected { server: Capabilities::of(dialect), evidence: Evidence::Told },
            None => Detected::default(),
        },
    };
    settle(base.to_owned(), options, first, found)
}

fn settle(base: String, options: &EndpointOptions, first_model: Option<String>, found: Detected) -> Endpoint {
    let model = options.model.clone().or(first_model).unwrap_or_else(|| ANY_MODEL.to_owned());
    Endpoint { base, model, found }
}

fn first_model(models: &Answer, redactor: &Redactor) -> Option<String> {
    let id = models.body.pointer("/data/0/id")?.as_str()?;
    Some(redactor.text(id))
}

/// Whether the answer is one that only a model server gives.
fn is_model_server(models: &Answer) -> bool {
    // Ollama without a model gives a list whose data is null.
    models.server == "llama.cpp" || models.body.get("data").is_some()
}
