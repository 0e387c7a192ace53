//! Where the model is: what was configured, what the environment says, what listens on this machine.

use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, SERVER};
use reqwest::{Client, Url};
use serde_json::Value;

use super::http::{build_client, endpoint_url};
use super::redact::Redactor;

/// Tried in order when nothing is configured: llama.cpp's default port, then Ollama's.
const LOCAL: [&str; 2] = ["http://127.0.0.1:8080/v1", "http://127.0.0.1:11434/v1"];

/// A server that does not answer a probe in this time is asked nothing more.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

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
}

impl Default for EndpointOptions {
    fn default() -> Self {
        let connect = crate::spec::Timers::default().connect;
        Self { endpoint: None, model: None, key: None, connect }
    }
}

/// Without the key.
impl std::fmt::Debug for EndpointOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { endpoint, model, key: _, connect } = self;
        f.debug_struct("EndpointOptions")
            .field("endpoint", endpoint)
            .field("model", model)
            .field("connect", connect)
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
    /// Whether the server is a llama.cpp, which queues requests without a word.
    pub llama_cpp: bool,
    /// Whether the model's template takes several calls in one message.
    pub parallel_tool_calls: bool,
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

/// Settles endpoint and model. A configured endpoint is taken at its word: if it does not answer, the request says so.
///
/// # Errors
/// When nothing is configured and nothing listens, or the URL is none.
pub async fn find_endpoint(options: EndpointOptions) -> Result<Endpoint, EndpointError> {
    if let Some(base) = &options.endpoint {
        let url = endpoint_url(base, "models").map_err(EndpointError::Invalid)?;
        let client = build_client(&url, options.connect).map_err(EndpointError::Invalid)?;
        // A hosted API with a named model has nothing to tell that would be worth a round trip.
        let probe = if options.model.is_some() && url.scheme() == "https" {
            None
        } else {
            probe(&client, &url, options.key.as_deref(), options.key.as_deref()).await
        };
        return Ok(settle(base.clone(), &options, probe.unwrap_or_default()));
    }
    for base in LOCAL {
        let url = endpoint_url(base, "models").map_err(EndpointError::Invalid)?;
        let client = build_client(&url, Duration::from_millis(300)).map_err(EndpointError::Invalid)?;
        // Many a program listens on such a port; only a model server is taken for one, and told the key.
        if let Some(found) = probe(&client, &url, None, options.key.as_deref()).await
            && found.is_model_server
        {
            return Ok(settle(base.to_owned(), &options, found));
        }
    }
    Err(EndpointError::NotFound)
}

/// What a server told.
#[derive(Debug, Default)]
struct Probe {
    /// Whether the answer is one that only a model server gives.
    is_model_server: bool,
    first_model: Option<String>,
    llama_cpp: bool,
    /// `None`: not told.
    parallel_tool_calls: Option<bool>,
}

fn settle(base: String, options: &EndpointOptions, probe: Probe) -> Endpoint {
    Endpoint {
        base,
        model: options.model.clone().or(probe.first_model).unwrap_or_else(|| ANY_MODEL.to_owned()),
        llama_cpp: probe.llama_cpp,
        parallel_tool_calls: probe.parallel_tool_calls.unwrap_or(true),
    }
}

/// `None`: nobody answered. `first_key` goes with the first question, `key` with the next.
async fn probe(client: &Client, models: &Url, first_key: Option<&str>, key: Option<&str>) -> Option<Probe> {
    let (server, body) = get(client, models.clone(), first_key).await?;
    let mut probe = read_models(server.as_deref(), &body, &Redactor::new(key));
    if probe.llama_cpp
        && let Ok(props) = models.join("/props")
    {
        let told = get(client, props, key).await;
        let caps = told.and_then(|(_, body)| {
            body.pointer("/chat_template_caps/supports_parallel_tool_calls")?.as_bool()
        });
        probe.parallel_tool_calls = caps;
    }
    Some(probe)
}

/// What the list of models says, and the `Server` header.
fn read_models(server: Option<&str>, body: &Value, redactor: &Redactor) -> Probe {
    let first = body.pointer("/data/0").cloned().unwrap_or_default();
    let owner = first.get("owned_by").and_then(Value::as_str);
    let llama_cpp = server == Some("llama.cpp") || owner == Some("llamacpp");
    Probe {
        // Ollama without a model gives a list whose data is null.
        is_model_server: llama_cpp || body.get("data").is_some(),
        first_model: first.get("id").and_then(Value::as_str).map(|id| redactor.text(id)),
        llama_cpp,
        parallel_tool_calls: None,
    }
}

/// The `Server` header and the JSON body (null where there is none) of any answer.
async fn get(client: &Client, url: Url, key: Option<&str>) -> Option<(Option<String>, Value)> {
    let mut request = client.get(url).header(ACCEPT_ENCODING, "identity").timeout(PROBE_LIMIT);
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    let mut response = request.send().await.ok()?;
    let server = response.headers().get(SERVER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        body.extend_from_slice(&bytes);
        if body.len() > 4 << 20 {
            break;
        }
    }
    Some((server, serde_json::from_slice(&body).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_model_server_is_taken_for_one() {
        let read = |server, body: Value| {
            let probe = read_models(server, &body, &Redactor::new(None));
            (probe.is_model_server, probe.llama_cpp, probe.first_model)
        };
        let model = Some(String::from("m"));
        let list = json!({"object": "list", "data": [{"id": "m", "owned_by": "library"}]});
        assert_eq!(read(None, list), (true, false, model.clone()));
        assert_eq!(read(None, json!({"data": [{"id": "m", "owned_by": "llamacpp"}]})), (true, true, model));
        assert_eq!(read(None, json!({"object": "list", "data": null})), (true, false, None));
        let loading = json!({"error": {"code": 503, "message": "Loading model"}});
        assert_eq!(read(Some("llama.cpp"), loading), (true, true, None));
        assert_eq!(read(Some("Jetty"), Value::Null), (false, false, None));
        assert_eq!(read(None, json!({"error": "Not Found"})), (false, false, None));
    }
}
