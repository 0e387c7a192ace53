//! Questions to a server that cost nothing: `GET` of a page, bounded in time and bytes, the key taken out of what
//! comes back.
//!
//! Every answer is a stranger's: at most 4 MiB of it are read, and what is shown of it is one short line.

use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, LOCATION, SERVER};
use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

use super::http::{has_user, inflater_of, is_refused, is_sendable, root_cause, sent_key, shown_url};
use super::redact::{Redactor, secrets_of_url};
use crate::text::one_line;

/// Longer answers are not read on: a list of models is a page or two.
const MAX_BODY: usize = 4 << 20;
/// What a server says is cut to so many characters.
const MAX_SHOWN: usize = 200;

/// What to do where TLS failed.
pub(super) const TLS_ADVICE: &str =
    "if it is an http:// server, say so; else have its certificate trusted on this machine";

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
    #[error("{url} does not answer within {} s", limit.as_secs_f64())]
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
    #[error("{url} answers {status}: {}", sent.fault())]
    Unauthorized {
        /// Where.
        url: String,
        /// 401 or 403.
        status: u16,
        /// What was sent.
        sent: Credentials,
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
            Self::Tls { .. } => TLS_ADVICE,
            Self::Slow { .. } => "see whether the server is busy, or the address a wrong one",
            Self::Broken { .. } => {
                "check the address and the network; an https:// server says nothing to http://"
            }
            Self::Unauthorized { sent: Credentials::Key, .. } => {
                "correct the key, or take one that may use this server"
            }
            Self::Unauthorized { sent: Credentials::None, .. } => {
                "set the variable that the key is read from"
            }
            Self::Unauthorized { sent: Credentials::OfUrl, .. } => {
                "correct them; or leave them out, and the API key is sent"
            }
            Self::LacksV1 { .. } => "end the endpoint in /v1",
            Self::Redirect { .. } => "give that as the endpoint, without /models",
            Self::Status { .. } | Self::NoList { .. } => {
                "give the base URL of an OpenAI-compatible API, which mostly ends in /v1"
            }
        }
    }
}

/// What a request is to be let in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing.
    None,
    /// The API key.
    Key,
    /// The user and the password of the URL, in place of any key.
    OfUrl,
}

impl Credentials {
    fn fault(self) -> &'static str {
        match self {
            Self::None => "it wants an API key",
            Self::Key => "the API key is refused",
            Self::OfUrl => "the endpoint's user and password are refused",
        }
    }
}

fn of_server(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(" ({said})") }
}

/// Asks one server.
#[derive(Clone)]
pub(super) struct Prober {
    client: Client,
    key: Option<String>,
    /// The URL has a user or a password.
    has_user: bool,
    redactor: Redactor,
    /// Of each question.
    pub(super) limit: Duration,
}

impl Prober {
    /// Of the server that `url` is a page of. A key that no header takes is not sent.
    pub(super) fn new(client: Client, url: &Url, key: Option<&str>, limit: Duration) -> Self {
        let in_url = secrets_of_url(url);
        let redactor = Redactor::new(key.into_iter().chain(in_url.iter().map(String::as_str)));
        let key = sent_key(url, key).filter(|key| is_sendable(key)).map(str::to_owned);
        Self { client, key, has_user: has_user(url), redactor, limit }
    }

    /// What takes the key and the URL's secrets out of an answer.
    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// As it is, but that no key is sent.
    pub(super) fn without_key(mut self) -> Self {
        self.key = None;
        self
    }

    pub(super) fn credentials(&self) -> Credentials {
        match (self.has_user, &self.key) {
            (true, _) => Credentials::OfUrl,
            (false, Some(_)) => Credentials::Key,
            (false, None) => Credentials::None,
        }
    }

    /// `text` without the key and what the URL holds of secrets.
    pub(super) fn redacted(&self, text: &str) -> String {
        self.redactor.text(text)
    }

    /// The server's own words about an error, or empty.
    pub(super) fn said(&self, answer: &Answer) -> String {
        let pointers = ["/error/message", "/message", "/detail", "/error"];
        let mut texts = pointers.iter().filter_map(|pointer| answer.body.pointer(pointer)?.as_str());
        let said = texts.find(|text| !text.trim().is_empty());
        said.map(|said| self.clean(said)).unwrap_or_default()
    }

    pub(super) async fn get(&self, url: &Url) -> Result<Answer, ProbeError> {
        self.ask(self.client.get(url.clone()), url).await
    }

    /// Posts JSON to a page that only looks something up.
    pub(super) async fn post(&self, url: &Url, body: &Value) -> Result<Answer, ProbeError> {
        let request = self.client.post(url.clone()).header(CONTENT_TYPE, "application/json");
        self.ask(request.body(body.to_string()), url).await
    }

    async fn ask(&self, request: RequestBuilder, url: &Url) -> Result<Answer, ProbeError> {
        let mut request = request.header(ACCEPT_ENCODING, "identity").timeout(self.limit);
        if let Some(key) = &self.key {
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
            is_empty: true,
            body: Value::Null,
            url: shown,
        };
        let mut bytes = Vec::new();
        let mut inflater = inflater_of(&response);
        let broken =
            |url: &str, cause: String| ProbeError::Broken { url: url.to_owned(), cause: self.clean(&cause) };
        while bytes.len() < MAX_BODY {
            match response.chunk().await {
                Ok(Some(piece)) => {
                    let piece = inflater.feed(piece.to_vec());
                    bytes.extend(piece.map_err(|cause| broken(&answer.url, cause))?);
                }
                Ok(None) => {
                    bytes.extend(inflater.finish().map_err(|cause| broken(&answer.url, cause))?);
                    break;
                }
                Err(error) => return Err(self.explain(&error, answer.url)),
            }
        }
        answer.is_empty = bytes.is_empty();
        answer.body = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok(answer)
    }

    /// What a server says, as it can be shown.
    pub(super) fn clean(&self, text: &str) -> String {
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
}

/// What a server answered.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) is_html: bool,
    /// The header of that name, or empty.
    pub(super) server: String,
    pub(super) location: String,
    pub(super) is_empty: bool,
    /// Null where it is no JSON.
    pub(super) body: Value,
    /// As messages name it.
    pub(super) url: String,
}

impl Answer {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// How many slots of llama.cpp's `/slots` work; `None`: it is no such page.
pub(super) fn busy_slots(page: &Value) -> Option<usize> {
    let is_busy = |slot: &&Value| slot.get("is_processing").and_then(Value::as_bool) == Some(true);
    Some(page.as_array()?.iter().filter(is_busy).count())
}

/// Whether it was TLS that failed.
pub(super) fn is_of_tls(error: &reqwest::Error) -> bool {
    matches!(failing_layer(error), Some(Layer::Tls))
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
