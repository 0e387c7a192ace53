//! Probes of a server that do not involve a model: `GET` requests with a time limit and a size limit. The key is
//! redacted in responses.
//!
//! Responses are untrusted: at most 4 MiB are read, and at most one short line is shown.

use std::time::Duration;

use deftool_lang::text::one_line;
use deftool_record::Redactor;
use deftool_record::secrets::secrets_of_url;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, LOCATION, SERVER};
use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

use super::client::{Layer, TLS_ADVICE, failing_layer, is_refused, root_cause};
use super::url::{has_user, is_sendable, sent_key, shown_url, with_credentials};

/// Maximum size of a response, in bytes. A list of models is much shorter.
const MAX_BODY: usize = 4 << 20;
/// Maximum length of a shown text of a server, in characters.
const MAX_SHOWN: usize = 200;

/// An error of a probe: the reason why an endpoint cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The URL is invalid, or TLS cannot be set up.
    #[error("{0}")]
    Invalid(String),
    /// The connection was refused.
    #[error("nothing is listening at {0}")]
    Refused(String),
    /// The host name cannot be resolved.
    #[error("the host of {0} cannot be resolved")]
    UnknownHost(String),
    /// The TLS handshake failed.
    #[error("TLS handshake with {url} failed: {cause}")]
    Tls {
        /// The URL.
        url: String,
        /// The error of the TLS library.
        cause: String,
    },
    /// The time limit was exceeded.
    #[error("{url} did not answer within {} s", limit.as_secs_f64())]
    Slow {
        /// The URL.
        url: String,
        /// The time limit.
        limit: Duration,
    },
    /// The connection failed for another reason.
    #[error("no answer from {url}: {cause}")]
    Broken {
        /// The URL.
        url: String,
        /// The error of the HTTP library.
        cause: String,
    },
    /// The key is missing or was rejected.
    #[error("{url} returned HTTP {status}: {}", sent.problem())]
    Unauthorized {
        /// The URL.
        url: String,
        /// 401 or 403.
        status: u16,
        /// The credentials in the request.
        sent: Credentials,
    },
    /// The API is below `/v1`, which the URL lacks.
    #[error("{url} does not exist, but {url_with_v1} does")]
    LacksV1 {
        /// The requested URL.
        url: String,
        /// The correct URL.
        url_with_v1: String,
    },
    /// Another status.
    #[error("{url} returned HTTP {status}{}", in_parentheses(message))]
    Status {
        /// The URL.
        url: String,
        /// The status.
        status: u16,
        /// The error message of the server, or empty.
        message: String,
    },
    /// A redirect.
    #[error("{url} returned HTTP {status}; it redirects to {location}")]
    Redirect {
        /// The URL.
        url: String,
        /// The status, 3xx.
        status: u16,
        /// The target of the redirect.
        location: String,
    },
    /// The response is not a list of models.
    #[error("{url} returned {found}, expected a list of models")]
    NoList {
        /// The URL.
        url: String,
        /// The kind of response, such as `a web page`.
        found: &'static str,
    },
}

impl ProbeError {
    /// Returns advice for the user.
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "correct the endpoint",
            Self::Refused(_) => "start the server or correct the port",
            Self::UnknownHost(_) => "correct the host name or check the network",
            Self::Tls { .. } => TLS_ADVICE,
            Self::Slow { .. } => "check whether the server is busy or the address is wrong",
            Self::Broken { .. } => {
                "check the address and the network; an https:// server does not answer http:// requests"
            }
            Self::Unauthorized { sent: Credentials::Key, .. } => {
                "use an API key that is valid for this server"
            }
            Self::Unauthorized { sent: Credentials::None, .. } => {
                "set the environment variable of the API key"
            }
            Self::Unauthorized { sent: Credentials::OfUrl, .. } => {
                "correct them, or remove them to send the API key instead"
            }
            Self::LacksV1 { .. } => "add `/v1` to the endpoint",
            Self::Redirect { .. } => "use that URL without `/models` as the endpoint",
            Self::Status { .. } | Self::NoList { .. } => {
                "set the endpoint to the base URL of an OpenAI-compatible API, which usually ends in `/v1`"
            }
        }
    }
}

/// The credentials of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials {
    /// No credentials.
    None,
    /// The API key.
    Key,
    /// The user and the password of the URL, instead of a key.
    OfUrl,
}

impl Credentials {
    fn problem(self) -> &'static str {
        match self {
            Self::None => "an API key is required",
            Self::Key => "the API key was rejected",
            Self::OfUrl => "the endpoint's user and password were rejected",
        }
    }
}

fn in_parentheses(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(" ({message})") }
}

/// Probes one server.
#[derive(Clone)]
pub(crate) struct Prober {
    client: Client,
    key: Option<String>,
    /// Whether the URL contains a user or a password.
    has_user: bool,
    redactor: Redactor,
    /// Time limit of each request.
    pub(crate) limit: Duration,
}

impl Prober {
    /// Creates a prober for the server of `url`. A key that is not a valid header value is not sent.
    pub(crate) fn new(client: Client, url: &Url, key: Option<&str>, limit: Duration) -> Self {
        let in_url = secrets_of_url(url);
        let redactor = Redactor::new(key.into_iter().chain(in_url.iter().map(String::as_str)));
        let key = sent_key(url, key).filter(|key| is_sendable(key)).map(str::to_owned);
        Self { client, key, has_user: has_user(url), redactor, limit }
    }

    /// Returns the redactor of the key and the URL's secrets.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns the prober without its key.
    pub(crate) fn without_key(mut self) -> Self {
        self.key = None;
        self
    }

    /// Returns the credentials of its requests.
    pub(crate) fn credentials(&self) -> Credentials {
        match (self.has_user, &self.key) {
            (true, _) => Credentials::OfUrl,
            (false, Some(_)) => Credentials::Key,
            (false, None) => Credentials::None,
        }
    }

    /// Returns `text` without the key and the URL's secrets.
    pub(crate) fn redacted(&self, text: &str) -> String {
        self.redactor.text(text)
    }

    /// Returns the error message in a response, or an empty string.
    pub(crate) fn error_message(&self, answer: &Answer) -> String {
        let pointers = ["/error/message", "/message", "/detail", "/error"];
        let mut texts = pointers.iter().filter_map(|pointer| answer.body.pointer(pointer)?.as_str());
        let message = texts.find(|text| !text.trim().is_empty());
        message.map(|message| self.clean(message)).unwrap_or_default()
    }

    /// Requests a page.
    pub(crate) async fn get(&self, url: &Url) -> Result<Answer, ProbeError> {
        self.send(self.client.get(url.clone()), url).await
    }

    /// Posts JSON to a page that only returns information.
    pub(crate) async fn post(&self, url: &Url, body: &Value) -> Result<Answer, ProbeError> {
        let request = self.client.post(url.clone()).header(CONTENT_TYPE, "application/json");
        self.send(request.body(body.to_string()), url).await
    }

    /// Sends a request and reads its response.
    async fn send(&self, request: RequestBuilder, url: &Url) -> Result<Answer, ProbeError> {
        let request = request.header(ACCEPT_ENCODING, "identity").timeout(self.limit);
        let request = with_credentials(request, url, self.key.as_deref(), None);
        let shown = self.redactor.text(&shown_url(url));
        let mut response = request.send().await.map_err(|error| self.classify(&error, shown.clone()))?;
        let header =
            |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut answer = Answer {
            status: response.status().as_u16(),
            is_html: header(CONTENT_TYPE).starts_with("text/html"),
            server: header(SERVER).to_owned(),
            location: self.clean(header(LOCATION)),
            is_empty: true,
            body: Value::Null,
            url: shown,
        };
        let mut bytes = Vec::new();
        while bytes.len() < MAX_BODY {
            match response.chunk().await {
                Ok(Some(piece)) => bytes.extend(piece),
                Ok(None) => break,
                Err(error) => return Err(self.classify(&error, answer.url)),
            }
        }
        answer.is_empty = bytes.is_empty();
        answer.body = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok(answer)
    }

    /// Returns a text from a server as one short line without secrets.
    pub(crate) fn clean(&self, text: &str) -> String {
        let text = one_line(self.redactor.text(text));
        match text.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        }
    }

    /// Converts an error of the HTTP library.
    fn classify(&self, error: &reqwest::Error, url: String) -> ProbeError {
        if error.is_timeout() {
            return ProbeError::Slow { url, limit: self.limit };
        }
        if is_refused(error) {
            return ProbeError::Refused(url);
        }
        let cause = self.clean(&root_cause(error));
        match failing_layer(error) {
            Some(Layer::Dns) => ProbeError::UnknownHost(url),
            Some(Layer::Tls) => ProbeError::Tls { url, cause },
            None => ProbeError::Broken { url, cause },
        }
    }
}

/// A response to a probe.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) is_html: bool,
    /// The `Server` header, or empty.
    pub(crate) server: String,
    pub(crate) location: String,
    pub(crate) is_empty: bool,
    /// The JSON body, or null.
    pub(crate) body: Value,
    /// The URL for messages.
    pub(crate) url: String,
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Returns the number of busy slots in llama.cpp's `/slots`; `None`: the page has another format.
pub(crate) fn busy_slots(page: &Value) -> Option<usize> {
    let is_busy = |slot: &&Value| slot.get("is_processing").and_then(Value::as_bool) == Some(true);
    Some(page.as_array()?.iter().filter(is_busy).count())
}
