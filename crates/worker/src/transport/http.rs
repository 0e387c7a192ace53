//! The HTTP transport, with reqwest.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use deftool_chat::Api;
use deftool_lang::text::one_line;
use deftool_lang::tool::{TRACEPARENT, TRACESTATE};
use deftool_record::Redactor;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{Stream, StreamExt};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Client, Url};

use super::client::{
    TLS_ADVICE, http_client, is_of_tls, is_refused, is_undecodable, root_cause, unknown_encoding,
};
use super::interface::{Incoming, Outgoing, Page, PageResponse, Transport, TransportError, api_path};
use super::probe::{Credentials, Prober};
use super::url::{
    absolute_location, endpoint_url, is_sendable, sent_key, server_page, shown_url, with_credentials,
};

/// Time limit of a probe. A server that processes a prompt answers between two batches.
const PROBE_LIMIT: Duration = Duration::from_secs(5);
/// Maximum length of the name of an encoding in a message, in characters.
const MAX_ENCODING: usize = 40;

/// A transport that sends to `{base}/chat/completions`, `{base}/responses` or `{base}/messages`, depending on the API of
/// the request.
pub struct HttpTransport {
    client: Client,
    prober: Prober,
    base: Url,
    /// URL of the list of models.
    models: Url,
    completions: Target,
    responses: Target,
    messages: Target,
    key: Option<String>,
    redactor: Redactor,
}

/// The URL of one API.
struct Target {
    url: Url,
    /// The URL for messages.
    shown: String,
}

/// Does not print the key.
impl std::fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTransport").field("url", &self.completions.shown).finish_non_exhaustive()
    }
}

impl HttpTransport {
    /// Creates a transport to the base URL `base` (including `/v1`). `key` is sent as a bearer token, and to the Messages
    /// API as `x-api-key`, unless `base` contains a user or a password, which are sent instead. Secrets are redacted in
    /// responses.
    ///
    /// # Errors
    /// When `base` is not an HTTP URL, the key is invalid, or TLS cannot be set up. The error is a message.
    pub fn new(base: &str, key: Option<String>, connect: Duration) -> Result<Self, String> {
        let url = endpoint_url(base, api_path(Api::ChatCompletions))?;
        let models = endpoint_url(base, "models")?;
        if sent_key(&url, key.as_deref()).is_some_and(|key| !is_sendable(key)) {
            let message = "the API key contains a space or another character that is not allowed in HTTP headers; check \
                           that it is complete";
            return Err(String::from(message));
        }
        let responses = endpoint_url(base, api_path(Api::Responses))?;
        let messages = endpoint_url(base, api_path(Api::Messages))?;
        let base = endpoint_url(base, "")?;
        let client = http_client(&url, connect)?;
        let prober = Prober::new(client.clone(), &url, key.as_deref(), PROBE_LIMIT);
        let redactor = prober.redactor().clone();
        let key = sent_key(&url, key.as_deref()).map(str::to_owned);
        let target = |url: Url| Target { shown: redactor.text(&shown_url(&url)), url };
        let (completions, responses, messages) = (target(url), target(responses), target(messages));
        Ok(Self { client, prober, base, models, completions, responses, messages, key, redactor })
    }

    fn target(&self, api: Api) -> &Target {
        match api {
            Api::ChatCompletions => &self.completions,
            Api::Responses => &self.responses,
            Api::Messages => &self.messages,
        }
    }

    async fn exchange(&self, outgoing: Outgoing) -> Result<Incoming, TransportError> {
        let Target { url, shown } = self.target(outgoing.api);
        let target = url.clone();
        let mut request = self
            .client
            .post(url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream")
            // A compressed stream would arrive in large chunks.
            .header(ACCEPT_ENCODING, "identity")
            .body(outgoing.body.json().clone());
        request = with_credentials(request, url, self.key.as_deref(), Some(outgoing.api));
        if !outgoing.keep_alive {
            request = request.header(CONNECTION, "close");
        }
        if let Some(trace) = &outgoing.trace {
            request = request.header(TRACEPARENT, trace.traceparent());
            if !trace.tracestate().is_empty() {
                request = request.header(TRACESTATE, trace.tracestate());
            }
        }
        let redactor = self.redactor.clone();
        let response = request.send().await.map_err(|error| describe_error(&error, shown, &redactor))?;
        let url = shown.clone();
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.map(|location| redactor.text(&absolute_location(&target, location)));
        let (status, headers) = (response.status().as_u16(), response.headers());
        let (retry_after, should_retry) = (retry_after(headers), should_retry(headers));
        let end = unknown_encoding(&response).map(|encoding| {
            let encoding = redactor.text(&one_line(encoding.chars().take(MAX_ENCODING).collect()));
            let message = format!(
                "{url}: the body is encoded with `{encoding}`, although the request allows only `identity`; \
                 turn compression off in the server or in the proxy before it"
            );
            End::Failed(TransportError::Broken { message })
        });
        let body = ReplyBody { body: response.bytes_stream(), redactor, url, end };
        Ok(Incoming { status, retry_after, should_retry, location, body: body.boxed() })
    }
}

impl Transport for HttpTransport {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
        self.exchange(outgoing).boxed()
    }

    fn get_page(&self, page: Page) -> BoxFuture<'_, PageResponse> {
        let name = match page {
            Page::Health => "health",
            Page::Slots => "slots",
        };
        let url = server_page(&self.base, name);
        async move {
            match self.prober.get(&url).await {
                Ok(answer) => PageResponse::Received(answer.status, answer.body),
                Err(_) => PageResponse::NoAnswer,
            }
        }
        .boxed()
    }

    fn url(&self, api: Api) -> &str {
        &self.target(api).shown
    }

    fn lacks_credentials(&self) -> bool {
        self.prober.credentials() == Credentials::None
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), String>> {
        async {
            match self.prober.get(&self.models).await {
                Ok(answer) if matches!(answer.status, 401 | 403 | 500..) => {
                    let message = self.prober.error_message(&answer);
                    Err(format!("{} returned HTTP {} {message}", answer.url, answer.status)
                        .trim_end()
                        .to_owned())
                }
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        }
        .boxed()
    }

    fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

/// The body of a response, without secrets.
struct ReplyBody<S> {
    body: S,
    redactor: Redactor,
    /// The URL for messages.
    url: String,
    end: Option<End>,
}

/// The end of a body, after its last bytes.
enum End {
    Complete,
    Failed(TransportError),
}

impl<S: Stream<Item = reqwest::Result<Bytes>> + Unpin> Stream for ReplyBody<S> {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match this.end.take() {
                Some(End::Failed(error)) => {
                    this.end = Some(End::Complete);
                    return Poll::Ready(Some(Err(error)));
                }
                Some(End::Complete) => {
                    this.end = Some(End::Complete);
                    return Poll::Ready(None);
                }
                None => {}
            }
            let bytes = match ready!(this.body.poll_next_unpin(context)) {
                Some(Ok(bytes)) => this.redactor.feed(bytes),
                Some(Err(error)) => {
                    let error = describe_error(&error, &this.url, &this.redactor);
                    this.fail(error)
                }
                None => {
                    this.end = Some(End::Complete);
                    this.redactor.finish().into()
                }
            };
            if !bytes.is_empty() || this.end.is_none() {
                return Poll::Ready(Some(Ok(bytes)));
            }
        }
    }
}

impl<S> ReplyBody<S> {
    /// Ends the body with `error`. Returns the retained bytes.
    fn fail(&mut self, error: TransportError) -> Bytes {
        self.end = Some(End::Failed(error));
        self.redactor.cut().into()
    }
}

fn describe_error(error: &reqwest::Error, url: &str, redactor: &Redactor) -> TransportError {
    let cause = redactor.text(&root_cause(error));
    if error.is_connect() {
        let refused = is_refused(error);
        let (what, advice) = if is_of_tls(error) {
            ("TLS handshake with", TLS_ADVICE)
        } else if refused {
            ("connection to", "is the server running there?")
        } else {
            ("connection to", "check the address and the network")
        };
        return TransportError::Connect {
            message: format!("{what} {url} failed: {cause}; {advice}"),
            refused,
        };
    }
    let what = if is_undecodable(error) { "the body cannot be decompressed" } else { "connection lost" };
    TransportError::Broken { message: format!("{url}: {what}: {cause}") }
}

/// Returns the delay of `retry-after-ms`, or of `Retry-After` in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|ms| ms.parse::<f64>().ok()) {
        return wait_of(ms / 1000.0);
    }
    let value = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = value.parse::<f64>() {
        return wait_of(seconds);
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?;
    let now = jiff::Timestamp::try_from(SystemTime::now()).ok()?;
    let wait = date.timestamp().duration_since(now);
    Some(Duration::try_from(wait).unwrap_or_default())
}

/// Returns the value of `x-should-retry`. OpenAI and Anthropic send it, and their clients obey it for every status.
fn should_retry(headers: &HeaderMap) -> Option<bool> {
    headers.get("x-should-retry")?.to_str().ok()?.trim().to_ascii_lowercase().parse().ok()
}

/// Converts seconds to a duration in whole milliseconds, as in recordings. Saturates.
fn wait_of(seconds: f64) -> Option<Duration> {
    (seconds >= 0.0).then(|| {
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        Duration::from_millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
    })
}
