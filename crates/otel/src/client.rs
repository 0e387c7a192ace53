//! The HTTP client of the exporters.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use deftool_worker::{http_client, root_cause, shown_url};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::Url;
use tokio::runtime::Builder;

use crate::delivery::Delivery;

/// Time limit for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// An HTTP client for one collector.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    timeout: Duration,
    /// Gets the reasons of failures, which the exporters do not return.
    delivery: Arc<Delivery>,
}

impl Client {
    /// Creates a client for the server of `url`.
    ///
    /// # Errors
    /// When TLS cannot be set up, as a message.
    pub(crate) fn new(url: &Url, timeout: Duration, delivery: Arc<Delivery>) -> Result<Self, String> {
        Ok(Self { http: http_client(url, CONNECT)?, timeout, delivery })
    }

    /// Sends a request and returns the response without its body, which contains nothing that is used.
    fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string())?;
        let shown = shown_url(&url);
        let failed = |reason: &str| self.delivery.set_failure(Some(format!("{shown}: {reason}")));
        // Replaced when the server answers in time.
        failed("no response");
        let sending = self.http.request(head.method, url).headers(head.headers).body(body);
        let sending = sending.timeout(self.timeout);
        // The threads of the SDK have no runtime. The connection ends with this one: servers close idle connections
        // between two exports.
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let sent = runtime.block_on(async { sending.send().await });
        // Does not wait for a name server.
        runtime.shutdown_background();
        match &sent {
            Ok(response) if response.status().is_success() => self.delivery.set_failure(None),
            Ok(response) => failed(&format!("HTTP {}", response.status().as_u16())),
            Err(error) if error.is_timeout() => {}
            Err(error) => failed(&root_cause(error)),
        }
        Ok(Response::from(sent?).map(|_| Bytes::new()))
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
        ready(self.exchange(request)).boxed()
    }
}
