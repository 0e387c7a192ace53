//! One connection to a server: the handshake, and the list of its tools.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, Implementation, ListToolsRequest,
    PaginatedRequestParams, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::answer::{Warn, cause_of};
use super::changes::Changes;
use super::handshake::{LenientHandshake, NEWEST_PROTOCOL};
use super::http::HttpClient;
use super::program::ProgramTransport;
use super::request::request;

/// Time limit for the start of a server and the handshake. `npx` and `uvx` may have to download the server first.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Time limit for the list of tools.
const LIST_LIMIT: Duration = Duration::from_secs(30);

/// Maximum wait for the end of a program whose connection is closed.
const END_LIMIT: Duration = Duration::from_secs(1);

/// Time for a program to exit after its stdin was closed.
const EXIT_LIMIT: Duration = Duration::from_secs(2);

/// Maximum number of tools of one server.
const MAX_TOOLS: usize = 1000;

/// Maximum number of pages of the list of tools.
const MAX_PAGES: usize = 100;

/// A program that serves on its standard streams.
pub struct ServerProgram {
    /// Its stdin.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its stdout.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Waits until the program has ended, and returns a clause such as `exited with code 1`. Dropping it kills the
    /// program and all processes that it started.
    pub ended: BoxFuture<'static, String>,
}

/// Starts the program of a server.
pub type Launch = Box<dyn Fn() -> BoxFuture<'static, std::io::Result<ServerProgram>> + Send + Sync>;

/// Redacts the token of a server in all strings of a value.
pub type Redact = Box<dyn Fn(&mut Value) + Send + Sync>;

/// How to reach a server.
pub enum ServerTransport {
    /// A program that is started.
    Program(Launch),
    /// Streamable HTTP.
    Http {
        /// The URL of the endpoint.
        url: String,
        /// The bearer token.
        token: Option<String>,
        /// Further headers with their values.
        headers: Vec<(String, String)>,
    },
}

/// An MCP server whose tools are used.
pub struct RemoteServer {
    /// The name. The tools are called `NAME__TOOL`, with a hash if this is too long or not the name of one tool only.
    pub name: String,
    /// How to reach it.
    pub transport: ServerTransport,
    /// The tools to use, by the names that the server gives them; `None`: all.
    pub tools: Option<Vec<String>>,
    /// The tools to use, by their names in requests or as `NAME__TOOL`; `None`: all.
    pub only: Option<Vec<String>>,
    /// Whether nothing works without it. A server that is not required is left out if it does not start.
    pub is_required: bool,
    /// Whether each call needs the user's approval.
    pub confirm: bool,
    /// Time limit of a call.
    pub timeout: Option<Duration>,
    /// Applied to everything that the server sends before any other code receives it.
    pub redact: Redact,
}

impl RemoteServer {
    /// Returns `text` without the token.
    pub(super) fn redacted(&self, text: String) -> String {
        let mut value = Value::String(text);
        (self.redact)(&mut value);
        match value {
            Value::String(text) => text,
            other => other.to_string(),
        }
    }
}

/// An established connection.
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) service: RunningService<RoleClient, ClientConfig>,
    pub(super) changes: Changes,
    /// Set to the number of changes that are listed.
    pub(super) lister: watch::Sender<u64>,
    /// The end of the program, if there is one.
    pub(super) program: Option<BoxFuture<'static, String>>,
}

impl Connection {
    /// Connects to a server. `warn` receives what is wrong in the messages of the server.
    ///
    /// # Errors
    /// If the connection is not established in time. The error is a clause that omits the name of the server.
    pub(super) async fn open(server: &RemoteServer, warn: Warn) -> Result<Self, String> {
        let opened = tokio::time::timeout(START_LIMIT, Self::open_now(&server.transport, warn)).await;
        let opened = opened.unwrap_or_else(|_| Err(format!("did not answer within {START_LIMIT:?}")));
        opened.map_err(|error| server.redacted(error))
    }

    async fn open_now(transport: &ServerTransport, warn: Warn) -> Result<Self, String> {
        let (changes, lister) = Changes::new();
        let deftool = Implementation::new("deftool", env!("CARGO_PKG_VERSION"));
        // It offers no capabilities, so the server cannot send requests.
        let handler = ClientConfig::new(ClientCapabilities::default(), deftool);
        let lifecycle =
            ClientLifecycleMode::Auto { preferred_versions: vec![NEWEST_PROTOCOL], legacy_version: None };
        let mut ended = None;
        let service = match transport {
            ServerTransport::Program(launch) => {
                let program = launch().await.map_err(|error| format!("cannot be started: {error}"))?;
                let streams = ProgramTransport::new(program.output, program.input, Arc::clone(&warn));
                let streams = LenientHandshake::new(streams, changes.clone(), warn);
                ended = Some(program.ended);
                tokio::select! {
                    service = serve_client_with_lifecycle(handler, streams, lifecycle).boxed() => match service {
                        Ok(service) => service,
                        Err(error) => return Err(soon(&mut ended).await.unwrap_or_else(|| describe(&error))),
                    },
                    reason = end_of(&mut ended) => return Err(reason),
                }
            }
            ServerTransport::Http { url, token, headers } => {
                let http = HttpClient::new().map_err(|error| error.to_string())?;
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                if let Some(token) = token {
                    config = config.auth_header(token.as_str());
                }
                config = config.custom_headers(http_headers(headers)?);
                let transport = StreamableHttpClientTransport::with_client(http, config);
                let transport = LenientHandshake::new(transport, changes.clone(), warn);
                let service = serve_client_with_lifecycle(handler, transport, lifecycle).boxed().await;
                service.map_err(|error| format!("cannot connect to {url}: {}", describe(&error)))?
            }
        };
        Ok(Self { peer: service.peer().clone(), service, changes, lister, program: ended })
    }

    /// Returns the tools that the server offers, as it lists them.
    ///
    /// # Errors
    /// If the server does not list them in time. The error is a clause that omits the name of the server.
    pub(super) async fn list(server: &RemoteServer, peer: &Peer<RoleClient>) -> Result<Listing, String> {
        let listed = tokio::time::timeout(LIST_LIMIT, list_pages(peer)).await;
        let listed = listed.unwrap_or_else(|_| Err(format!("did not list its tools within {LIST_LIMIT:?}")));
        let mut listing = listed.map_err(|error| server.redacted(error))?;
        listing.tools.iter_mut().for_each(&server.redact);
        listing.problem = listing.problem.map(|problem| server.redacted(problem));
        Ok(listing)
    }

    /// Closes the connection, and waits until the program has ended.
    pub(super) async fn close(self) {
        let _ = self.service.cancel().await;
        wait_for_exit(self.program).await;
    }

    /// Subscribes to changes of the tools, which [`Changes`] counts. Older servers report them without a subscription.
    pub(super) async fn watch_tools(peer: Peer<RoleClient>) {
        let tools = SubscriptionFilter::builder().tools_list_changed().build();
        // An error means that the server is older or has no such events.
        let Ok(mut events) = peer.listen(tools).await else { return };
        while let Ok(Some(_)) = events.next().await {}
    }
}

/// Converts headers, whose values may contain anything.
fn http_headers(headers: &[(String, String)]) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let convert = |(name, value): &(String, String)| {
        let named = name.parse().map_err(|_| format!("`{name}` is not the name of a header"))?;
        let value = value.parse().map_err(|_| {
            format!("the value of the header `{name}` has characters that no header can have")
        })?;
        Ok((named, value))
    };
    headers.iter().map(convert).collect()
}

/// The tools of a server, as it lists them.
pub(super) struct Listing {
    pub(super) tools: Vec<Value>,
    /// Why the list is not complete, as a clause.
    pub(super) problem: Option<String>,
}

/// Reads the list of tools, page by page. A server that repeats itself has no more pages.
async fn list_pages(peer: &Peer<RoleClient>) -> Result<Listing, String> {
    let (mut tools, mut known, mut cursors) = (Vec::new(), HashSet::new(), HashSet::new());
    let mut page = PaginatedRequestParams::default();
    let problem = loop {
        let asked = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page.clone()));
        let answer = match request(peer, asked).await {
            Ok(answer) => answer,
            Err(ServiceError::McpError(error)) if !cursors.is_empty() => {
                break Some(format!("cannot list the rest of its tools: {}", error.message));
            }
            Err(ServiceError::McpError(error)) => {
                return Err(format!("cannot list its tools: {}", error.message));
            }
            Err(error) => return Err(format!("cannot list its tools: {}", cause_of(&error))),
        };
        let Some(listed) = answer.get("tools").and_then(Value::as_array) else {
            let problem = "the answer has no list `tools`";
            if cursors.is_empty() {
                return Err(format!("cannot list its tools: {problem}"));
            }
            break Some(format!("cannot list the rest of its tools: {problem}"));
        };
        // The same definition twice is one tool.
        tools.extend(listed.iter().filter(|tool| known.insert(tool.to_string())).cloned());
        if tools.len() > MAX_TOOLS {
            tools.truncate(MAX_TOOLS);
            break Some(format!("offers more than {MAX_TOOLS} tools; the rest is left out"));
        }
        let Some(cursor) = answer.get("nextCursor").and_then(Value::as_str) else { break None };
        if !cursors.insert(cursor.to_owned()) {
            break Some(String::from("repeats a cursor in the list of its tools, which ends there"));
        }
        if cursors.len() == MAX_PAGES {
            break Some(format!("lists its tools in more than {MAX_PAGES} pages; the rest is left out"));
        }
        page.cursor = Some(cursor.to_owned());
    };
    Ok(Listing { tools, problem })
}

/// Returns the cause of a failed handshake: a clause that omits the name of the server.
fn describe(error: &ClientInitializeError) -> String {
    if error.is_authorization_required() {
        return String::from("it requires a bearer token; name its environment variable in `:token-env`");
    }
    match error {
        ClientInitializeError::TransportError { error, .. } => match error.error.downcast_ref() {
            Some(StreamableHttpError::<reqwest::Error>::Client(error)) => cause_of(error),
            _ => cause_of(error),
        },
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => describe(fallback),
        other => other.to_string(),
    }
}

/// Waits until a program whose stdin was closed has ended. Afterwards it is killed.
pub(super) async fn wait_for_exit(mut program: Option<BoxFuture<'static, String>>) {
    if program.is_some() {
        let _ = tokio::time::timeout(EXIT_LIMIT, end_of(&mut program)).await;
    }
}

/// Waits until a program has ended, and returns how.
pub(super) async fn end_of(program: &mut Option<BoxFuture<'static, String>>) -> String {
    match program {
        Some(ended) => ended.await,
        None => std::future::pending().await,
    }
}

/// Returns how a program ended, if it ends soon: its end explains a closed connection.
pub(super) async fn soon(program: &mut Option<BoxFuture<'static, String>>) -> Option<String> {
    tokio::time::timeout(END_LIMIT, end_of(program)).await.ok()
}
