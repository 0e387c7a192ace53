//! The requests of a client.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, Implementation, InitializeRequest, InitializeResponse,
    LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse,
    PromptCapabilities, PromptRequest, PromptResponse, SessionId,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{
    Agent, Client, ConnectTo, Error, ErrorCode, JsonRpcResponse, Lines, on_receive_notification,
    on_receive_request,
};
use deftool_chat::Message;
use deftool_lang::tool::{TRACEPARENT, TRACESTATE, TraceContext};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::host::{ClientServer, ClientTransport, Host, OpenedSession, SessionRequest};
use crate::lines;
use crate::turn::{Peer, failed, send};
use crate::updates::{prompt_message, replay, warning};

/// Serves one client until `input` ends, `output` fails or `stop` is canceled. Then cancels all prompts, stores their
/// replies, and closes the host. Must be called in a multi-threaded runtime.
///
/// # Errors
/// If the connection fails.
pub async fn serve(
    host: impl Host,
    input: impl AsyncRead + Send + 'static,
    output: impl AsyncWrite + Send + 'static,
    stop: CancellationToken,
) -> io::Result<()> {
    let server = Arc::new(Server {
        host: Box::new(host),
        sessions: Mutex::default(),
        shows_notices: AtomicBool::new(false),
        tasks: TaskTracker::new(),
        canceled: stop.child_token(),
    });
    let (outgoing, incoming, waiting) = lines::connect(input);
    let connected = async {
        let connected = connect(&server, Lines::new(outgoing, incoming)).await;
        connected.map_err(|error| io::Error::other(error.message))
    };
    let served = async { tokio::try_join!(connected, lines::write(output, waiting)) };
    let served = stop.run_until_cancelled(served).await;
    server.canceled.cancel();
    server.tasks.close();
    server.tasks.wait().await;
    server.host.close().await;
    served.unwrap_or(Ok(((), ()))).map(drop)
}

/// Answers the messages of the client until the connection ends.
async fn connect(server: &Arc<Server>, transport: impl ConnectTo<Agent> + 'static) -> Result<(), Error> {
    // Each handler owns a reference.
    let [initializing, creating, loading, prompting, canceling] = std::array::from_fn(|_| Arc::clone(server));
    Agent
        .v1()
        .name("deftool")
        .on_receive_request(
            async move |request: InitializeRequest, responder, _| {
                responder.respond(initializing.initialize(&request))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, _| {
                let server = Arc::clone(&creating);
                creating.answer(responder, async move {
                    let (id, _) = server.open(request.cwd, None, request.mcp_servers).await?;
                    Ok(NewSessionResponse::new(id))
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest, responder, connection: ConnectionTo<Client>| {
                let server = Arc::clone(&loading);
                loading.answer(responder, async move {
                    let id = Some(request.session_id.to_string());
                    let (id, messages) = server.open(request.cwd, id, request.mcp_servers).await?;
                    let peer = server.peer(id, connection);
                    for update in replay(&messages) {
                        peer.update(update);
                    }
                    Ok(LoadSessionResponse::new())
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, connection: ConnectionTo<Client>| {
                // A `session/cancel` that follows cancels this prompt, even if its task has not started.
                match prompting.start_prompt(&request.session_id) {
                    Ok(prompt) => {
                        let peer = prompting.peer(request.session_id.to_string(), connection);
                        prompting.answer(responder, prompt.run(peer, request));
                        Ok(())
                    }
                    Err(error) => responder.respond_with_error(error),
                }
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: CancelNotification, _| {
                if let Some(session) = canceling.sessions().get(&*notification.session_id.0) {
                    session.canceled().cancel();
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(transport)
        .await
}

/// A running agent.
struct Server {
    host: Box<dyn Host>,
    sessions: Mutex<HashMap<String, Session>>,
    /// Whether the client shows notices.
    shows_notices: AtomicBool,
    tasks: TaskTracker,
    /// Cancels all prompts.
    canceled: CancellationToken,
}

impl Server {
    fn initialize(&self, request: &InitializeRequest) -> InitializeResponse {
        let session = request.client_capabilities.session.as_ref();
        let shows_notices = session.is_some_and(|session| session.notices.is_some());
        self.shows_notices.store(shows_notices, Ordering::Relaxed);
        // The server of a session is not known yet. One without images gets a line of text for each.
        let prompts = PromptCapabilities::new().embedded_context(true).image(true);
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(AgentCapabilities::new().load_session(true).prompt_capabilities(prompts))
            .agent_info(Implementation::new("deftool", env!("CARGO_PKG_VERSION")))
    }

    /// Opens a session. Returns its ID and the stored messages.
    async fn open(
        &self,
        folder: PathBuf,
        id: Option<String>,
        servers: Vec<McpServer>,
    ) -> Result<(String, Vec<Message>), Error> {
        if !folder.is_absolute() {
            return Err(invalid(format!("`cwd` is not an absolute path: {}", folder.display())));
        }
        if let Some(id) = &id
            && let Some(session) = self.sessions().get(id)
        {
            let opened = session.opened.try_lock().map_err(|_| busy())?;
            return Ok((id.clone(), opened.request.messages.clone()));
        }
        let servers = servers.into_iter().filter_map(client_server).collect();
        let opening = self.host.open(SessionRequest { folder, id, servers });
        let opened = self.canceled.run_until_cancelled(opening).await;
        let opened =
            opened.unwrap_or_else(|| Err(String::from("canceled"))).map_err(|error| failed(&error))?;
        let (id, messages) = (opened.id.clone(), opened.request.messages.clone());
        let session =
            Session { opened: Arc::new(tokio::sync::Mutex::new(opened)), canceled: Mutex::default() };
        self.sessions().insert(id.clone(), session);
        Ok((id, messages))
    }

    /// Reserves a session for a prompt.
    fn start_prompt(&self, id: &SessionId) -> Result<Prompt, Error> {
        let sessions = self.sessions();
        let session = sessions.get(&*id.0).ok_or_else(|| {
            invalid(format!("unknown session `{id}`; open it with `session/new` or `session/load`"))
        })?;
        let opened = Arc::clone(&session.opened).try_lock_owned();
        let opened = opened.map_err(|_| busy())?;
        let canceled = self.canceled.child_token();
        *session.canceled() = canceled.clone();
        Ok(Prompt { opened, canceled })
    }

    fn peer(&self, session_id: String, connection: ConnectionTo<Client>) -> Peer {
        Peer { session_id, connection, shows_notices: self.shows_notices.load(Ordering::Relaxed) }
    }

    /// Runs `work`, and sends its result.
    fn answer<T: JsonRpcResponse>(
        &self,
        responder: Responder<T>,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) {
        self.tasks.spawn(async move {
            // Fails only if the client is gone.
            let _ = responder.respond_with_result(work.await);
        });
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session of the client.
struct Session {
    /// Locked while a prompt runs.
    opened: Arc<tokio::sync::Mutex<OpenedSession>>,
    /// Cancels the current prompt.
    canceled: Mutex<CancellationToken>,
}

impl Session {
    fn canceled(&self) -> MutexGuard<'_, CancellationToken> {
        self.canceled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A prompt that can run.
struct Prompt {
    opened: OwnedMutexGuard<OpenedSession>,
    canceled: CancellationToken,
}

impl Prompt {
    async fn run(mut self, peer: Peer, request: PromptRequest) -> Result<PromptResponse, Error> {
        let PromptRequest { prompt, meta, .. } = request;
        self.opened.request.trace = meta.and_then(|meta| {
            let member = |name| meta.get(name).and_then(Value::as_str).unwrap_or_default();
            TraceContext::parse(member(TRACEPARENT), member(TRACESTATE))
        });
        let message = prompt_message(prompt).map_err(invalid)?;
        if matches!(&message, Message::User { content, .. } if content.trim().is_empty()) {
            return Err(invalid(String::from("the prompt is empty")));
        }
        for message in std::mem::take(&mut self.opened.notices) {
            peer.update(warning(&message));
        }
        let stop_reason = send(&mut self.opened, &peer, message, &self.canceled).await?;
        Ok(PromptResponse::new(stop_reason))
    }
}

/// Returns an MCP server of the client; `None` for a transport that the protocol did not have when this was written.
fn client_server(server: McpServer) -> Option<ClientServer> {
    let (name, transport) = match server {
        McpServer::Stdio(server) => {
            let program = server.command.display().to_string();
            let command = std::iter::once(program).chain(server.args).collect();
            let env = server.env.into_iter().map(|variable| (variable.name, variable.value)).collect();
            (server.name, ClientTransport::Program { command, env })
        }
        McpServer::Http(server) => (server.name, ClientTransport::Unsupported),
        McpServer::Sse(server) => (server.name, ClientTransport::Unsupported),
        _ => return None,
    };
    Some(ClientServer { name, transport })
}

fn busy() -> Error {
    invalid(String::from("another prompt of this session is not finished"))
}

/// Returns an error about the parameters of a request.
fn invalid(message: String) -> Error {
    Error::new(ErrorCode::INVALID_PARAMS, message)
}
