//! The HTTP client of the exporters. It keeps the reason of the last failure, which the exporters do not return.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deftool_worker::{http_client, shown_url};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::Url;

/// Time limit for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Maximum size of a response that is read, in bytes.
const MAX_RESPONSE: usize = 64 << 10;

/// Why the last export failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// One clause with the URL.
    pub(crate) reason: String,
    /// Whether the same data may be accepted later.
    pub(crate) is_temporary: bool,
}

/// An HTTP client for one collector.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    timeout: Duration,
    failure: Arc<Mutex<Option<Failure>>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// Creates a client for the server of `url`. `failure` holds the reason why the last export failed.
    ///
    /// # Errors
    /// When TLS cannot be set up, as a message.
    pub(crate) fn new(
        url: &Url,
        timeout: Duration,
        failure: Arc<Mutex<Option<Failure>>>,
    ) -> Result<Self, String> {
        Ok(Self { http: http_client(url, CONNECT)?, timeout, failure })
    }

    fn set_failure(&self, failure: Option<Failure>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string())?;
        let shown = shown_url(&url);
        let failed = |reason: String, is_temporary| {
            self.set_failure(Some(Failure { reason: format!("{shown}: {reason}"), is_temporary }));
        };
        // Replaced when the server answers in time.
        failed(String::from("no response"), true);
        let sending = self.http.request(head.method, url).headers(head.headers).body(body);
        let mut response = sending.timeout(self.timeout).send().await.inspect_err(|error| {
            failed(if error.is_timeout() { String::from("no response") } else { root_cause(error) }, true);
        })?;
        let status = response.status();
        let mut received = Vec::new();
        while let Some(bytes) = response.chunk().await? {
            received.extend(bytes.iter().take(MAX_RESPONSE.saturating_sub(received.len())));
            if received.len() >= MAX_RESPONSE {
                break;
            }
        }
        if status.is_success() {
            self.set_failure(None);
        } else {
            failed(format!("HTTP {}", status.as_u16()), matches!(status.as_u16(), 429 | 502 | 503 | 504));
        }
        Ok(Response::builder().status(status).body(Bytes::from(received))?)
    }
}

impl HttpClient for Client {
    fn send_bytes<'s, 'f>(
        &'s self,
        request: Request<Bytes>,
    ) -> BoxFuture<'f, Result<Response<Bytes>, HttpError>>
    where
        's: 'f,
        Self: 'f,
    {
        self.exchange(request).boxed()
    }
}

/// Returns the text of the innermost error, without the number of the operating system. The outer errors add no
/// information.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<std::io::Error>().filter(|error| error.raw_os_error().is_some()) {
        Some(error) => error.kind().to_string(),
        None => cause.to_string().replace(['\n', '\r'], " "),
    }
}
