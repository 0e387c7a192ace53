//! Serves many clients over streamable HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower_service::Service;

use crate::server::{MAX_MESSAGE, ToolServer};
use crate::session::Session;

/// The path of the endpoint.
const PATH: &str = "/mcp";

/// Maximum number of open connections. A client uses one for each running request.
const MAX_CONNECTIONS: usize = 256;

/// Time in which a client must send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Wait after an error of `accept`, for example because too many files are open.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A server of tools for the clients of one address.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    token: Option<Arc<str>>,
}

impl HttpServer {
    /// Listens on `address`; port 0 chooses a free port. Clients must send `token` as bearer token, if there is one.
    ///
    /// # Errors
    /// If the address is not available.
    pub async fn bind(address: SocketAddr, token: Option<String>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, token: token.map(Arc::from) })
    }

    /// Returns the URL of the endpoint.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Serves `tools` to all clients, without end.
    ///
    /// Requests of web pages (with an `Origin`) are rejected. On a loopback address, the `Host` must be a loopback name
    /// too, so that no web page reaches the server through DNS rebinding.
    pub async fn serve(self, tools: ToolServer) -> Infallible {
        let mut config = StreamableHttpServerConfig::default()
            .enforce_origin_validation()
            .with_max_request_body_bytes(MAX_MESSAGE);
        if !self.address.ip().is_loopback() {
            // The names of this machine are not known here. A web page does not have the token.
            config = config.disable_allowed_hosts();
        }
        let sessions = Arc::new(LocalSessionManager::default());
        let service = StreamableHttpService::new(move || Ok(Session::new(tools.clone())), sessions, config);
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            // The semaphore is never closed.
            let permit = Arc::clone(&connections).acquire_owned().await;
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(ACCEPT_RETRY).await;
                continue;
            };
            let (service, token) = (service.clone(), self.token.clone());
            let answer = service_fn(move |request: Request<Incoming>| {
                let refused = refuse(&request, token.as_deref());
                let mut service = service.clone();
                async move {
                    match refused {
                        Some(response) => Ok(response.map(BodyExt::boxed)),
                        None => service.call(request).await,
                    }
                }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), answer);
            tokio::spawn(async move {
                // An error means that the client is gone.
                let _ = connection.await;
                drop(permit);
            });
        }
    }
}

/// Returns the answer to a request of another path, or without the token.
fn refuse(request: &Request<Incoming>, token: Option<&str>) -> Option<Response<Full<hyper::body::Bytes>>> {
    let answer = |status, text: &'static str| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        response
    };
    if token.is_some_and(|token| !has_token(request.headers(), token)) {
        let mut response = answer(StatusCode::UNAUTHORIZED, "missing or wrong bearer token\n");
        response.headers_mut().insert(WWW_AUTHENTICATE, hyper::header::HeaderValue::from_static("Bearer"));
        return Some(response);
    }
    (request.uri().path() != PATH).then(|| answer(StatusCode::NOT_FOUND, "the endpoint is /mcp\n"))
}

/// Compares in constant time.
fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let sent = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let sent = sent
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    sent.is_some_and(|(_, sent)| {
        let differences = sent.bytes().zip(token.bytes()).fold(0, |seen, (one, other)| seen | (one ^ other));
        sent.len() == token.len() && differences == 0
    })
}
