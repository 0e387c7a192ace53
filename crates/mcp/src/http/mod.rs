//! Serves many clients over streamable HTTP.

mod admission;
mod reply;
mod sessions;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use deftool_jsonrpc::MAX_MESSAGE;
use deftool_lang::text::web_page_refusal;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tower_service::Service;

use crate::caller::ClientAddress;
use crate::lines::TOO_LARGE;
use crate::server::ToolServer;
use crate::session::Session;

use self::admission::{Connection, Connections};
use self::reply::{Answer, gathered};
use self::sessions::Sessions;

/// The path of the endpoint.
const PATH: &str = "/mcp";

/// Time in which an admitted client must send the head of its next request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Time in which a client must send the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

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

    /// Serves `tools` to all clients, without end. Requests of web pages are refused.
    pub async fn serve(self, tools: ToolServer) -> Infallible {
        // `Endpoint::refusal` checks `Host` and `Origin`.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(MAX_MESSAGE);
        let service = move || Ok(Session::new(tools.clone()));
        let endpoint = Arc::new(Endpoint {
            service: StreamableHttpService::new(service, Arc::default(), config),
            token: self.token,
            is_loopback: self.address.ip().is_loopback(),
            connections: Connections::new(),
        });
        loop {
            endpoint.connections.ready().await;
            match self.listener.accept().await {
                Ok((stream, client)) => {
                    // Before its task runs, so that the connections have the order of their arrival.
                    let connection = endpoint.connections.add();
                    tokio::spawn(Arc::clone(&endpoint).serve(stream, ClientAddress(client.ip()), connection));
                }
                Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
            }
        }
    }
}

/// What all connections share.
struct Endpoint {
    service: StreamableHttpService<Session, Sessions>,
    token: Option<Arc<str>>,
    is_loopback: bool,
    connections: Connections,
}

impl Endpoint {
    async fn serve(self: Arc<Self>, stream: TcpStream, client: ClientAddress, connection: Arc<Connection>) {
        // Without this option, an event of a reply waits until the client acknowledged the one before, up to 40 ms. If it
        // cannot be set, the reply is only slower.
        let _ = stream.set_nodelay(true);
        let answer = service_fn(|request| {
            let (endpoint, connection) = (Arc::clone(&self), Arc::clone(&connection));
            async move { Ok::<_, Infallible>(endpoint.answer(request, client, &connection).await) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), answer);
        self.connections.serve(&connection, served).await;
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        client: ClientAddress,
        connection: &Arc<Connection>,
    ) -> Answer {
        if let Some(refusal) = self.refusal(&request) {
            return refusal;
        }
        if !self.connections.admit(connection) {
            return text(StatusCode::SERVICE_UNAVAILABLE, "too many connections");
        }
        let (mut head, body) = request.into_parts();
        head.extensions.insert(client);
        match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, MAX_MESSAGE).collect()).await {
            Ok(Ok(body)) => {
                // A GET request opens a stream, whose head is the sign that it is open.
                let has_reply = head.method == Method::POST;
                let request = Request::from_parts(head, Full::new(body.to_bytes()));
                let reply = self.service.clone().call(request).await.unwrap_or_else(|never| match never {});
                if has_reply { gathered(reply).await } else { reply }
            }
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                text(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE)
            }
            // The client is gone.
            Ok(Err(_)) => text(StatusCode::BAD_REQUEST, "incomplete body"),
            Err(_) => text(StatusCode::REQUEST_TIMEOUT, "the body was not complete within 10 s"),
        }
    }

    /// Returns the answer to a request of a web page, of another path, or without the token.
    fn refusal(&self, request: &Request<Incoming>) -> Option<Answer> {
        let headers = request.headers();
        let texts = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()));
        if let Some(reason) = web_page_refusal(texts, self.is_loopback) {
            return Some(text(StatusCode::FORBIDDEN, reason));
        }
        if self.token.as_deref().is_some_and(|token| !has_token(headers, token)) {
            let mut response = text(StatusCode::UNAUTHORIZED, "missing or wrong bearer token");
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Some(response);
        }
        (request.uri().path() != PATH).then(|| text(StatusCode::NOT_FOUND, "the endpoint is /mcp"))
    }
}

/// Returns an answer with one line of text.
fn text(status: StatusCode, line: &str) -> Answer {
    let mut response = Response::new(Full::from(format!("{line}\n")).boxed());
    *response.status_mut() = status;
    response
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
