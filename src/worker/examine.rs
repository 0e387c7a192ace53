//! What a server says of itself, asked for a person: whether it answers, which models it has, and what a llama.cpp server
//! knows of its context and its chat template. No model is asked anything.
//!
//! A request takes an endpoint at its word and reports what comes of it ([`find_endpoint`](super::find_endpoint)); here every
//! way in which a base URL is wrong has its own word. `/props` as llama.cpp answers it (tools/server/README.md of
//! ggml-org/llama.cpp, 2026-10), `max_model_len` as vLLM lists it.

use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, LOCATION, SERVER};
use reqwest::{Client, Url};
use serde_json::Value;

use super::http::{build_client, endpoint_url, is_refused, root_cause, shown_url};
use super::redact::Redactor;
use crate::text::one_line;

/// Longer answers are not read on: a list of models is a page or two.
const MAX_BODY: usize = 4 << 20;
/// More models than this are not looked through.
const MAX_MODELS: usize = 10_000;
/// What a server says of its error is cut to so many characters.
const MAX_SHOWN: usize = 200;

/// What was found at an endpoint.
#[derive(Debug, Clone)]
pub struct Examination {
    /// Its models, or why there is no list.
    pub models: Result<Vec<Model>, ProbeError>,
    /// Whether it is a llama.cpp server, which takes any model's name.
    pub is_llama_cpp: bool,
    /// What a llama.cpp server says of itself.
    pub props: Option<Props>,
}

/// A model that a server lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Its name, without control characters.
    pub id: String,
    /// Its context in tokens, where the list says it.
    pub context: Option<u64>,
}

/// What a llama.cpp server says of itself, as far as it says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Props {
    /// The context of one slot, in tokens.
    pub context: Option<u64>,
    /// Whether the chat template has a place for tools.
    pub takes_tools: Option<bool>,
}

/// Why an endpoint cannot be used: a clause that says what was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The URL is none, or TLS cannot be set up.
    #[error("{0}")]
    Invalid(String),
    /// Nobody listens there.
    #[error("nobody listens at {0}")]
    Refused(String),
    /// The host has no address.
    #[error("the host of {0} is not found")]
    UnknownHost(String),
    /// TLS failed.
    #[error("no TLS with {url}: {cause}")]
    Tls {
        /// Where.
        url: String,
        /// What the library says.
        cause: String,
    },
    /// No answer in time.
    #[error("{url} does not answer within {} s", limit.as_secs())]
    Slow {
        /// Where.
        url: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The connection failed otherwise.
    #[error("no answer from {url}: {cause}")]
    Broken {
        /// Where.
        url: String,
        /// What the library says.
        cause: String,
    },
    /// The key is missing or refused.
    #[error("{url} answers {status}: {}", if *has_key { "the API key is refused" } else { "it wants an API key" })]
    Unauthorized {
        /// Where.
        url: String,
        /// 401 or 403.
        status: u16,
        /// Whether one was sent.
        has_key: bool,
    },
    /// The API is a level deeper.
    #[error("{url} is not there, and {url_with_v1} is")]
    LacksV1 {
        /// What was asked for.
        url: String,
        /// What would have been right.
        url_with_v1: String,
    },
    /// Some other status.
    #[error("{url} answers {status}{}", of_server(said))]
    Status {
        /// Where.
        url: String,
        /// Which.
        status: u16,
        /// The server's own words, or empty.
        said: String,
    },
    /// The answer sends elsewhere.
    #[error("{url} answers {status} and sends to {location}")]
    Redirect {
        /// Where.
        url: String,
        /// 3xx.
        status: u16,
        /// To where.
        location: String,
    },
    /// An answer that is no list of models.
    #[error("{url} answers with {found}, not with a list of models")]
    NoList {
        /// Where.
        url: String,
        /// A web page, JSON of another shape …
        found: &'static str,
    },
}

impl ProbeError {
    /// What to do next.
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "correct the endpoint",
            Self::Refused(_) => "start the server, or correct the port",
            Self::UnknownHost(_) => "correct the host's name, or look at the network",
            Self::Tls { .. } => {
                "if it is an http:// server, say so; else have its certificate trusted on this machine"
            }
            Self::Slow { .. } => "see whether the server is busy, or the address a wrong one",
            Self::Broken { .. } => {
                "check the address and the network; an https:// server says nothing to http://"
            }
            Self::Unauthorized { has_key: true, .. } => {
                "correct the key, or take one that may use this server"
            }
            Self::Unauthorized { has_key: false, .. } => "set the variable that the key is read from",
            Self::LacksV1 { .. } => "end the endpoint in /v1",
            Self::Redirect { .. } => "give that as the endpoint, without /models",
            Self::Status { .. } | Self::NoList { .. } => {
                "give the base URL of an OpenAI-compatible API, which mostly ends in /v1"
            }
        }
    }
}

fn of_server(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(" ({said})") }
}

/// Asks the base URL `base` (`/v1` included). Each question may take `limit`. The key goes to that host alone, and is taken
/// out of what comes back.
pub async fn examine_endpoint(base: &str, key: Option<&str>, limit: Duration) -> Examination {
    let failed = |error| Examination { models: Err(error), is_llama_cpp: false, props: None };
    let key = key.filter(|key| key.bytes().all(|byte| byte.is_ascii_graphic()));
    let redactor = Redactor::new(key);
    let url = match endpoint_url(base, "models") {
        Ok(url) => url,
        Err(error) => return failed(ProbeError::Invalid(redactor.text(&one_line(error)))),
    };
    let client = match build_client(&url, limit) {
        Ok(client) => client,
        Err(error) => return failed(ProbeError::Invalid(one_line(error))),
    };
    let prober = Prober { client, key, redactor, limit };
    let answer = match prober.ask(&url).await {
        Ok(answer) => answer,
        Err(error) => return failed(error),
    };
    let is_llama_cpp = answer.is_llama_cpp();
    let models = match answer.models(&prober) {
        Err(ProbeError::Status { url: shown, status: 404, .. }) if !has_version(&url) => {
            Err(prober.look_deeper(base, shown).await.unwrap_or_else(|| prober.status(&answer)))
        }
        models => models,
    };
    let props = match (is_llama_cpp, url.join("/props")) {
        (true, Ok(props)) => prober.ask(&props).await.ok().map(|answer| read_props(&answer.body())),
        (true, Err(_)) | (false, _) => None,
    };
    Examination { models, is_llama_cpp, props }
}

/// Whether the path has a part like `v1` or `v1beta`.
fn has_version(url: &Url) -> bool {
    let mut parts = url.path_segments().into_iter().flatten();
    parts.any(|part| part.starts_with('v') && part.chars().nth(1).is_some_and(|c| c.is_ascii_digit()))
}

struct Prober<'a> {
    client: Client,
    key: Option<&'a str>,
    redactor: Redactor,
    limit: Duration,
}

impl Prober<'_> {
    async fn ask(&self, url: &Url) -> Result<Answer, ProbeError> {
        let mut request =
            self.client.get(url.clone()).header(ACCEPT_ENCODING, "identity").timeout(self.limit);
        if let Some(key) = self.key {
            request = request.bearer_auth(key);
        }
        let shown = self.redactor.text(&shown_url(url));
        let mut response = request.send().await.map_err(|error| self.explain(&error, shown.clone()))?;
        let header =
            |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut answer = Answer {
            status: response.status().as_u16(),
            is_html: header(CONTENT_TYPE).starts_with("text/html"),
            server: header(SERVER).to_owned(),
            location: self.clean(header(LOCATION)),
            bytes: Vec::new(),
            url: shown,
        };
        while answer.bytes.len() < MAX_BODY {
            match response.chunk().await {
                Ok(Some(bytes)) => answer.bytes.extend_from_slice(&bytes),
                Ok(None) => break,
                Err(error) => return Err(self.explain(&error, answer.url)),
            }
        }
        Ok(answer)
    }

    /// What a server says, as it can be shown.
    fn clean(&self, text: &str) -> String {
        let text = one_line(self.redactor.text(text));
        match text.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        }
    }

    fn explain(&self, error: &reqwest::Error, url: String) -> ProbeError {
        if error.is_timeout() {
            return ProbeError::Slow { url, limit: self.limit };
        }
        if is_refused(error) {
            return ProbeError::Refused(url);
        }
        let cause = self.clean(&root_cause(error));
        match failing_layer(error) {
            Some(Layer::Names) => ProbeError::UnknownHost(url),
            Some(Layer::Tls) => ProbeError::Tls { url, cause },
            None => ProbeError::Broken { url, cause },
        }
    }

    /// Whether what is not at `base` is a level deeper.
    async fn look_deeper(&self, base: &str, url: String) -> Option<ProbeError> {
        let deeper = endpoint_url(base, "v1/models").ok()?;
        let answer = self.ask(&deeper).await.ok()?;
        let is_there = matches!(answer.status, 401 | 403) || answer.models(self).is_ok();
        is_there.then_some(ProbeError::LacksV1 { url, url_with_v1: answer.url })
    }

    fn status(&self, answer: &Answer) -> ProbeError {
        let body = answer.body();
        let said = ["/error/message", "/error", "/message", "/detail"];
        let said = said.iter().find_map(|pointer| body.pointer(pointer)?.as_str());
        let said = said.map(|said| self.clean(said)).unwrap_or_default();
        ProbeError::Status { url: answer.url.clone(), status: answer.status, said }
    }
}

enum Layer {
    Names,
    Tls,
}

/// Which layer below HTTP failed, as far as the words of the errors tell: their types are private.
fn failing_layer(error: &reqwest::Error) -> Option<Layer> {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        let words = error.to_string();
        if words.contains("dns error") {
            return Some(Layer::Names);
        }
        if ["certificate", "tls", "TLS", "InvalidContentType", "HandshakeFailure"]
            .iter()
            .any(|word| words.contains(word))
        {
            return Some(Layer::Tls);
        }
        source = error.source();
    }
    None
}

struct Answer {
    status: u16,
    is_html: bool,
    server: String,
    location: String,
    bytes: Vec<u8>,
    /// As messages name it.
    url: String,
}

impl Answer {
    /// Null where it is no JSON.
    fn body(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    fn is_llama_cpp(&self) -> bool {
        let owner = |body: &Value| body.pointer("/data/0/owned_by").is_some_and(|owner| owner == "llamacpp");
        self.server == "llama.cpp" || owner(&self.body())
    }

    fn models(&self, prober: &Prober<'_>) -> Result<Vec<Model>, ProbeError> {
        let (url, status) = (self.url.clone(), self.status);
        match status {
            200..=299 => {}
            300..=399 if !self.location.is_empty() => {
                return Err(ProbeError::Redirect { url, status, location: self.location.clone() });
            }
            401 | 403 => return Err(ProbeError::Unauthorized { url, status, has_key: prober.key.is_some() }),
            _ => return Err(prober.status(self)),
        }
        let body = self.body();
        let no_list = |found| ProbeError::NoList { url: url.clone(), found };
        let list = match body.get("data") {
            Some(Value::Array(list)) => list.as_slice(),
            // Ollama without a model.
            Some(Value::Null) => &[],
            Some(_) => return Err(no_list("JSON of another shape")),
            None if self.is_html => return Err(no_list("a web page")),
            None if self.bytes.is_empty() => return Err(no_list("nothing")),
            None if body.is_null() => return Err(no_list("no JSON")),
            None => return Err(no_list("JSON of another shape")),
        };
        let model = |model: &Value| {
            let id = prober.clean(model.get("id")?.as_str()?);
            Some(Model { id, context: model.get("max_model_len").and_then(Value::as_u64) })
        };
        Ok(list.iter().take(MAX_MODELS).filter_map(model).collect())
    }
}

fn read_props(body: &Value) -> Props {
    let cap = |name: &str| body.pointer(&format!("/chat_template_caps/{name}")).and_then(Value::as_bool);
    let takes_tools = match (cap("supports_tools"), cap("supports_tool_calls")) {
        // An older server says nothing of what its template can; the template itself names what it uses.
        (None, None) => body.get("chat_template").and_then(Value::as_str).map(|text| text.contains("tool")),
        (tools, calls) => Some(tools == Some(true) || calls == Some(true)),
    };
    Props { context: body.pointer("/default_generation_settings/n_ctx").and_then(Value::as_u64), takes_tools }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn props_say_what_they_say_and_no_more() {
        let read = |body: Value| {
            let props = read_props(&body);
            (props.context, props.takes_tools)
        };
        let caps = |tools: bool, calls: bool| json!({"supports_tools": tools, "supports_tool_calls": calls});
        for (body, expected) in [
            (json!({"default_generation_settings": {"n_ctx": 4096}}), (Some(4096), None)),
            (json!({"chat_template_caps": caps(true, false)}), (None, Some(true))),
            (
                json!({"chat_template_caps": caps(false, false), "chat_template": "tools"}),
                (None, Some(false)),
            ),
            (json!({"chat_template": "{% if tools %}"}), (None, Some(true))),
            (json!({"chat_template": "{{ messages }}"}), (None, Some(false))),
            (json!({"chat_template": 1, "default_generation_settings": {"n_ctx": "many"}}), (None, None)),
            (Value::Null, (None, None)),
        ] {
            assert_eq!(read(body.clone()), expected, "{body}");
        }
    }
}
