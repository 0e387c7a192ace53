//! Finds the endpoint of the model: the configured one, or a server on this machine.

use std::time::Duration;

use deftool_chat::{Api, Capabilities, Details, Dialect, Dialects};
use deftool_lang::spec::WorkerSpec;
use reqwest::Url;
use serde_json::{Value, json};

use super::detect::{Detected, Evidence, detect};
use crate::transport::{Answer, ProbeError, Prober, endpoint_url, http_client, server_page};

/// Endpoints that are probed in order when none is configured: the default ports of llama.cpp and Ollama.
const LOCAL: [&str; 2] = ["http://127.0.0.1:8080/v1", "http://127.0.0.1:11434/v1"];

/// Time limit of the first probe. Without an answer, the server is not probed further.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// Time limit of further probes, which are optional.
const MORE_LIMIT: Duration = Duration::from_secs(2);

/// Maximum number of models that are tried, if none is chosen.
const MAX_CANDIDATES: usize = 100;

/// Model name if the server did not list one. Servers with a single model accept any name.
pub const ANY_MODEL: &str = "default";

/// Options of [`find_endpoint`].
#[derive(Clone)]
pub struct EndpointOptions {
    /// Base URL, including `/v1`, from the command line, the spec, or `OPENAI_BASE_URL`.
    pub endpoint: Option<String>,
    /// The model's name, from the command line or the spec.
    pub model: Option<String>,
    /// The API key.
    pub key: Option<String>,
    /// Connect timeout, including TLS.
    pub connect: Duration,
    /// Dialect, if the spec sets it.
    pub dialect: Option<Dialect>,
    /// The dialects that are detected.
    pub dialects: Dialects,
    /// Whether the key is also sent to a server that was not configured and was detected on this machine. Any program
    /// may listen there.
    pub key_for_found: bool,
    /// Whether a refused connection to the configured endpoint is an error here. If not, the first request reports it.
    pub must_listen: bool,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        let connect = deftool_lang::spec::Timers::default().connect;
        Self {
            endpoint: None,
            model: None,
            key: None,
            connect,
            dialect: None,
            dialects: Dialects::default(),
            key_for_found: false,
            must_listen: false,
        }
    }
}

/// Does not print the key.
impl std::fmt::Debug for EndpointOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { endpoint, model, connect, dialect, .. } = self;
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
    /// Detected dialect and capabilities.
    pub found: Detected,
    /// Whether the key is sent to this endpoint.
    pub takes_key: bool,
}

/// An error of [`find_endpoint`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// No endpoint is configured, and no local server was found.
    #[error(
        "no endpoint: give --endpoint URL, set OPENAI_BASE_URL or the worker's :endpoint, or start a server on \
         127.0.0.1:8080 (llama.cpp) or 127.0.0.1:11434 (Ollama)"
    )]
    NotFound,
    /// The configured endpoint is invalid.
    #[error("{0}")]
    Invalid(String),
    /// No model is chosen, and the server has none that can chat.
    #[error("the server has only embedding models ({0}): choose or install a model that can chat")]
    OnlyEmbeddings(String),
    /// The configured endpoint must accept connections but does not.
    #[error("{}; {}", .0, .0.next_step())]
    Unreachable(ProbeError),
}

/// Determines endpoint, model and dialect. A configured endpoint that does not answer is not an error, unless
/// `must_listen` is set: the first request reports it. The key is not sent to a detected endpoint, unless
/// `key_for_found` is set.
///
/// # Errors
/// When no endpoint is configured and no local server is found, or the URL is invalid.
pub async fn find_endpoint(options: EndpointOptions) -> Result<Endpoint, EndpointError> {
    find(options, &LOCAL.map(str::to_owned)).await
}

async fn find(options: EndpointOptions, local: &[String]) -> Result<Endpoint, EndpointError> {
    if let Some(base) = &options.endpoint {
        let url = endpoint_url(base, "models").map_err(EndpointError::Invalid)?;
        let client = http_client(&url, options.connect).map_err(EndpointError::Invalid)?;
        // For a hosted API with a configured model, probes are not worth a round trip.
        let of_host = || url.host_str().and_then(|host| options.dialects.of_host(host));
        let known = options.dialect.or_else(of_host);
        if url.scheme() == "https"
            && options.model.is_some()
            && let Some(dialect) = known.filter(|dialect| dialect.details().is_none())
        {
            let evidence = if options.dialect.is_some() { Evidence::Configured } else { Evidence::Host };
            let found = Detected { server: Capabilities::of(dialect), evidence };
            return Ok(build_endpoint(base.clone(), &options, None, found, true));
        }
        let prober = Prober::new(client, &url, options.key.as_deref(), PROBE_LIMIT);
        let models = match prober.get(&url).await {
            Ok(models) => Some(models),
            Err(error @ ProbeError::Refused(_)) if options.must_listen => {
                return Err(EndpointError::Unreachable(error));
            }
            Err(_) => None,
        };
        return probe_further(base, prober, &options, models, true).await;
    }
    for base in local {
        let url = endpoint_url(base, "models").map_err(EndpointError::Invalid)?;
        let client = http_client(&url, Duration::from_millis(300)).map_err(EndpointError::Invalid)?;
        // Other programs may listen on these ports, so the answer must look like that of a model server.
        let prober = Prober::new(client, &url, options.key.as_deref(), PROBE_LIMIT);
        let response = prober.clone().without_key().get(&url).await;
        if let Some(models) = response.ok().filter(is_model_server) {
            // Any program can send such an answer, so the key is not sent by default.
            let takes_key = options.key_for_found;
            let prober = if takes_key { prober } else { prober.without_key() };
            return probe_further(base, prober, &options, Some(models), takes_key).await;
        }
    }
    Err(EndpointError::NotFound)
}

/// Returns the API of a worker: that of its spec, otherwise the one of its endpoint's host. `endpoint`: the base URL that
/// replaces that of the spec.
pub fn api_of(spec: &WorkerSpec, endpoint: Option<&str>) -> Api {
    let of_host = || {
        let configured = endpoint.or(spec.endpoint.as_deref()).map(str::to_owned);
        let variable = || std::env::var("OPENAI_BASE_URL").ok().filter(|_| spec.server.is_none());
        let url = Url::parse(configured.or_else(variable)?.trim()).ok()?;
        Dialects::built_in().of_host(url.host_str()?)?.api()
    };
    spec.api.or_else(of_host).unwrap_or_default()
}

/// Whether a URL is below one of the default local endpoints.
pub(crate) fn is_default_local_url(url: &str) -> bool {
    LOCAL.iter().any(|base| url.strip_prefix(base).is_some_and(|rest| rest.starts_with('/')))
}

/// Detects the dialect and the capabilities, if the server answered.
async fn probe_further(
    base: &str,
    mut prober: Prober,
    options: &EndpointOptions,
    models: Option<Answer>,
    takes_key: bool,
) -> Result<Endpoint, EndpointError> {
    prober.limit = MORE_LIMIT;
    let listed = match &models {
        Some(models) if options.model.is_none() => listed_models(models),
        Some(_) | None => Vec::new(),
    };
    let candidates: Vec<&str> = listed.iter().copied().filter(|id| !names_embedding(id)).collect();
    let only_embeddings = || {
        let names: Vec<String> = listed.iter().map(|id| prober.redacted(id)).collect();
        EndpointError::OnlyEmbeddings(names.join(", "))
    };
    if candidates.is_empty() && !listed.is_empty() {
        return Err(only_embeddings());
    }
    let url = Url::parse(base.trim()).ok();
    let detect_for = async |model: Option<&str>| match (&url, &models) {
        (Some(url), Some(models)) => {
            let model = options.model.as_deref().or(model);
            detect(&options.dialects, &prober, url, Some(models), model, options.dialect).await
        }
        // The server did not answer and is not probed again.
        (Some(_), None) | (None, _) => match options.dialect {
            Some(dialect) => Detected { server: Capabilities::of(dialect), evidence: Evidence::Configured },
            None => Detected {
                server: Capabilities::of(options.dialects.default_dialect()),
                evidence: Evidence::Nothing,
            },
        },
    };
    let mut first = candidates.first().copied();
    let mut found = detect_for(first).await;
    // Only Ollama lists embedding models whose names do not show it, such as `bge-m3`.
    if let Some(url) = url.as_ref().filter(|_| found.server.dialect.details() == Some(Details::Ollama))
        && first.is_some()
    {
        let able = first_able(url, &candidates, &prober).await.ok_or_else(only_embeddings)?;
        if first != Some(able) {
            first = Some(able);
            found = detect_for(first).await;
        }
    }
    let first = first.map(|id| prober.redacted(id));
    Ok(build_endpoint(base.to_owned(), options, first, found, takes_key))
}

fn build_endpoint(
    base: String,
    options: &EndpointOptions,
    first_model: Option<String>,
    found: Detected,
    takes_key: bool,
) -> Endpoint {
    let model = options.model.clone().or(first_model).unwrap_or_else(|| ANY_MODEL.to_owned());
    Endpoint { base, model, found, takes_key }
}

/// Returns the names of a list of models.
fn listed_models(models: &Answer) -> Vec<&str> {
    let list = models.body.get("data").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|model| model.get("id")?.as_str()).take(MAX_CANDIDATES).collect()
}

/// Whether the name is that of an embedding model.
fn names_embedding(id: &str) -> bool {
    id.to_ascii_lowercase().contains("embed")
}

/// Returns the first model of Ollama that can chat.
async fn first_able<'m>(url: &Url, models: &[&'m str], prober: &Prober) -> Option<&'m str> {
    for id in models {
        let shown = prober.post(&server_page(url, "api/show"), &json!({ "model": id })).await;
        let shown = shown.ok().filter(Answer::is_success);
        let capabilities = shown.as_ref().and_then(|shown| shown.body.get("capabilities")?.as_array());
        let has = |name: &str| capabilities.is_some_and(|known| known.iter().any(|one| one == name));
        if has("completion") || !has("embedding") {
            return Some(id);
        }
    }
    None
}

/// Whether the answer looks like that of a model server.
fn is_model_server(models: &Answer) -> bool {
    // Ollama without models returns a list with `data: null`.
    models.server == "llama.cpp" || models.body.get("data").is_some()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::{Arc, Mutex};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that answers like a model server and records its requests.
    async fn model_server() -> (String, Arc<Mutex<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(String::new()));
        let log = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let length = stream.read(&mut request).await.unwrap();
                log.lock().unwrap().push_str(&String::from_utf8_lossy(&request[..length]));
                let body = r#"{"data": [{"id": "m", "owned_by": "me"}]}"#;
                let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}", body.len());
                let _ = stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await;
            }
        });
        (base, requests)
    }

    #[tokio::test]
    async fn a_detected_server_receives_no_key_unless_that_is_allowed() {
        let key = || Some(String::from("sk-very-secret"));
        for (named, key_for_found, takes_key) in
            [(false, false, false), (false, true, true), (true, false, true)]
        {
            let (base, requests) = model_server().await;
            let options = EndpointOptions {
                endpoint: named.then(|| base.clone()),
                key: key(),
                key_for_found,
                ..EndpointOptions::default()
            };
            let found = find(options, std::slice::from_ref(&base)).await.unwrap();
            assert_eq!((found.base, found.takes_key), (base, takes_key));
            let requests = requests.lock().unwrap();
            assert!(requests.contains("GET /props"), "the server was probed further: {requests}");
            assert_eq!(requests.contains("sk-very-secret"), takes_key, "{named} {key_for_found}: {requests}");
        }
    }

    #[tokio::test]
    async fn a_local_program_that_is_not_a_model_server_is_skipped() {
        let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = format!("http://{}/v1", other.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = other.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                let answer =
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 13\r\n\r\n{\"jobs\": [1]}";
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let (base, _) = model_server().await;
        let found = find(EndpointOptions::default(), &[place, base.clone()]).await.unwrap();
        assert_eq!(found.base, base);
    }

    #[test]
    fn the_host_determines_the_api_unless_the_spec_names_one() {
        let (anthropic, other) = ("https://api.anthropic.com/v1", "https://api.anthropic.com.example/v1");
        for (api, of_spec, named, expected) in [
            (None, Some(anthropic), None, Api::Messages),
            (None, Some(other), Some(anthropic), Api::Messages),
            (None, Some(anthropic), Some(other), Api::ChatCompletions),
            (Some(Api::ChatCompletions), Some(anthropic), None, Api::ChatCompletions),
            (Some(Api::Messages), Some(other), None, Api::Messages),
        ] {
            let endpoint = of_spec.map(str::to_owned);
            let spec = WorkerSpec { api, endpoint, ..WorkerSpec::named("w") };
            assert_eq!(api_of(&spec, named), expected, "{of_spec:?} {named:?}");
        }
    }

    #[test]
    fn default_local_endpoints_are_matched_as_whole_urls() {
        for (url, is_one) in [
            ("http://127.0.0.1:8080/v1/chat/completions", true),
            ("http://127.0.0.1:11434/v1/responses", true),
            ("http://127.0.0.1:8080/v12/chat/completions", false),
            ("http://127.0.0.1:80/v1/chat/completions", false),
        ] {
            assert_eq!(is_default_local_url(url), is_one, "{url}");
        }
    }
}
