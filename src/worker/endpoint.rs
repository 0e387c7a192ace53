//! Where the model is: what was configured, what the environment says, what listens on this machine.

use std::time::Duration;

use reqwest::Url;

use super::detect::{Detected, Evidence, detect, of_host};
use super::http::{build_client, endpoint_url};
use super::probe::{Answer, ProbeError, Prober};
use crate::chat::Capabilities;
use crate::spec::Dialect;

/// Tried in order when nothing is configured: llama.cpp's default port, then Ollama's.
const LOCAL: [&str; 2] = ["http://127.0.0.1:8080/v1", "http://127.0.0.1:11434/v1"];

/// A server that does not answer a probe in this time is asked nothing more.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// One that answered is asked for more, and need not answer that.
const MORE_LIMIT: Duration = Duration::from_secs(2);

/// The model's name where no server told one; servers with a single model take any.
pub(crate) const ANY_MODEL: &str = "default";

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
    /// Whether the key is also for a server that nobody named and that was only found on this machine: whatever listens
    /// there is sent it then.
    pub key_for_found: bool,
    /// Whether it is an error that nobody listens at a configured endpoint; else the first request tells it.
    pub must_listen: bool,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        let connect = crate::spec::Timers::default().connect;
        Self {
            endpoint: None,
            model: None,
            key: None,
            connect,
            dialect: None,
            key_for_found: false,
            must_listen: false,
        }
    }
}

/// Without the key.
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
    /// Whose server it is, and what it told of itself.
    pub found: Detected,
    /// Whether the key is sent there.
    pub takes_key: bool,
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
    /// Nobody listens at what was configured, and somebody must.
    #[error("{}; {}", .0, .0.next_step())]
    Silent(ProbeError),
}

/// Settles endpoint, model and dialect. A configured endpoint is taken at its word: if it does not answer, the
/// request says so, unless somebody must listen there. One that was only found is sent no key, unless the key is for it,
/// too.
///
/// # Errors
/// When nothing is configured and nothing listens, or the URL is none.
pub async fn find_endpoint(options: EndpointOptions) -> Result<Endpoint, EndpointError> {
    find(options, &LOCAL.map(str::to_owned)).await
}

async fn find(options: EndpointOptions, local: &[String]) -> Result<Endpoint, EndpointError> {
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
            return Ok(settle(base.clone(), &options, None, found, true));
        }
        let prober = Prober::new(client, &url, options.key.as_deref(), PROBE_LIMIT);
        let models = match prober.get(&url).await {
            Ok(models) => Some(models),
            Err(error @ ProbeError::Refused(_)) if options.must_listen => {
                return Err(EndpointError::Silent(error));
            }
            Err(_) => None,
        };
        return Ok(ask_more(base, prober, &options, models, true).await);
    }
    for base in local {
        let url = endpoint_url(base, "models").map_err(EndpointError::Invalid)?;
        let client = build_client(&url, Duration::from_millis(300)).map_err(EndpointError::Invalid)?;
        // Many a program listens on such a port; only what answers as a model server does is taken for one.
        let prober = Prober::new(client, &url, options.key.as_deref(), PROBE_LIMIT);
        let asked = prober.clone().without_key().get(&url).await;
        if let Some(models) = asked.ok().filter(is_model_server) {
            // And anybody can answer so.
            let takes_key = options.key_for_found;
            let prober = if takes_key { prober } else { prober.without_key() };
            return Ok(ask_more(base, prober, &options, Some(models), takes_key).await);
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

/// Whether a URL leads to where a server is looked for that nobody named.
pub(super) fn is_usual_place(url: &str) -> bool {
    LOCAL.iter().any(|base| url.strip_prefix(base).is_some_and(|rest| rest.starts_with('/')))
}

/// Finds out whose server it is, if somebody answered.
async fn ask_more(
    base: &str,
    mut prober: Prober,
    options: &EndpointOptions,
    models: Option<Answer>,
    takes_key: bool,
) -> Endpoint {
    prober.limit = MORE_LIMIT;
    let first = models.as_ref().and_then(|models| first_model(models, &prober));
    let model = options.model.as_deref().or(first.as_deref());
    let found = match (Url::parse(base.trim()), &models) {
        (Ok(url), Some(models)) => detect(&prober, &url, Some(models), model, options.dialect).await,
        // Nobody answers: nothing is asked again.
        (Ok(_), None) | (Err(_), _) => match options.dialect {
            Some(dialect) => Detected { server: Capabilities::of(dialect), evidence: Evidence::Told },
            None => Detected::default(),
        },
    };
    settle(base.to_owned(), options, first, found, takes_key)
}

fn settle(
    base: String,
    options: &EndpointOptions,
    first_model: Option<String>,
    found: Detected,
    takes_key: bool,
) -> Endpoint {
    let model = options.model.clone().or(first_model).unwrap_or_else(|| ANY_MODEL.to_owned());
    Endpoint { base, model, found, takes_key }
}

fn first_model(models: &Answer, prober: &Prober) -> Option<String> {
    let id = models.body.pointer("/data/0/id")?.as_str()?;
    Some(prober.redacted(id))
}

/// Whether the answer is one that only a model server gives.
fn is_model_server(models: &Answer) -> bool {
    // Ollama without a model gives a list whose data is null.
    models.server == "llama.cpp" || models.body.get("data").is_some()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::{Arc, Mutex};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Somebody who answers like a model server, and writes down what it is asked.
    async fn somebody() -> (String, Arc<Mutex<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(String::new()));
        let writes = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let length = stream.read(&mut request).await.unwrap();
                writes.lock().unwrap().push_str(&String::from_utf8_lossy(&request[..length]));
                let body = r#"{"data": [{"id": "m", "owned_by": "me"}]}"#;
                let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}", body.len());
                let _ = stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await;
            }
        });
        (base, heard)
    }

    #[tokio::test]
    async fn who_was_only_found_is_sent_no_key_unless_it_is_for_it() {
        let key = || Some(String::from("sk-very-secret"));
        for (named, key_for_found, takes_key) in
            [(false, false, false), (false, true, true), (true, false, true)]
        {
            let (base, heard) = somebody().await;
            let options = EndpointOptions {
                endpoint: named.then(|| base.clone()),
                key: key(),
                key_for_found,
                ..EndpointOptions::default()
            };
            let found = find(options, std::slice::from_ref(&base)).await.unwrap();
            assert_eq!((found.base, found.takes_key), (base, takes_key));
            let heard = heard.lock().unwrap();
            assert!(heard.contains("GET /props"), "it was asked for more: {heard}");
            assert_eq!(heard.contains("sk-very-secret"), takes_key, "{named} {key_for_found}: {heard}");
        }
    }

    #[tokio::test]
    async fn a_program_at_a_usual_place_that_is_no_model_server_is_passed_over() {
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
        let (base, _) = somebody().await;
        let found = find(EndpointOptions::default(), &[place, base.clone()]).await.unwrap();
        assert_eq!(found.base, base);
    }

    #[test]
    fn the_usual_places_are_known_whole() {
        for (url, is_one) in [
            ("http://127.0.0.1:8080/v1/chat/completions", true),
            ("http://127.0.0.1:11434/v1/responses", true),
            ("http://127.0.0.1:8080/v12/chat/completions", false),
            ("http://127.0.0.1:80/v1/chat/completions", false),
        ] {
            assert_eq!(is_usual_place(url), is_one, "{url}");
        }
    }
}
