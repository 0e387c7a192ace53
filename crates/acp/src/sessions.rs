//! The open sessions of a client.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    McpServer, PromptRequest, PromptResponse, SessionId, SessionMode, SessionModeState,
};
use agent_client_protocol::{Client, Error, ErrorCode};
use deftool_chat::Message;
use deftool_lang::tool::{TRACEPARENT, TRACESTATE, TraceContext};
use deftool_worker::AlwaysAllowed;
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

use crate::host::{
    CallKind, ClientServer, ClientTransport, Host, OpenedSession, SessionRequest, StoredSession,
};
use crate::turn::{Conversation, Peer, failed, send};
use crate::updates::{prompt_message, warning};

/// The open sessions of a client.
pub(crate) struct Sessions {
    host: Box<dyn Host>,
    open: Mutex<HashMap<String, Session>>,
    /// Whether the client shows notices.
    shows_notices: AtomicBool,
    /// Cancels all prompts.
    canceled: CancellationToken,
}

/// A session of the client.
#[derive(Clone)]
struct Session {
    /// How it was opened.
    origin: Arc<SessionRequest>,
    /// Locked while a prompt runs.
    conversation: Arc<AsyncMutex<Conversation>>,
    /// Cancels the current prompt.
    canceled: Arc<Mutex<CancellationToken>>,
}

/// A conversation as it was opened.
pub(crate) struct Opened {
    pub(crate) messages: Vec<Message>,
    pub(crate) kind_of: Arc<dyn Fn(&str) -> CallKind + Send + Sync>,
}

impl Sessions {
    pub(crate) fn new(host: Box<dyn Host>, canceled: CancellationToken) -> Self {
        Self { host, open: Mutex::default(), shows_notices: AtomicBool::new(false), canceled }
    }

    pub(crate) fn show_notices(&self, shows_notices: bool) {
        self.shows_notices.store(shows_notices, Ordering::Relaxed);
    }

    pub(crate) async fn close_host(&self) {
        self.host.close().await;
    }

    /// Opens a session. Returns its ID, its conversation and its modes.
    pub(crate) async fn open(
        &self,
        folder: PathBuf,
        id: Option<String>,
        servers: Vec<McpServer>,
    ) -> Result<(String, Opened, Option<SessionModeState>), Error> {
        check_folder(&folder)?;
        let open = id.as_ref().and_then(|id| self.sessions().get(id).cloned());
        if let Some(session) = open {
            let conversation = session.conversation.try_lock().map_err(|_| busy())?;
            return Ok(opened(&conversation.session));
        }
        let servers = servers.into_iter().filter_map(client_server).collect();
        let request = SessionRequest { folder, id, servers };
        let opening = self.host.open(request.clone());
        let session = self.canceled.run_until_cancelled(opening).await;
        let session =
            session.unwrap_or_else(|| Err(String::from("canceled"))).map_err(|error| failed(&error))?;
        let opened = opened(&session);
        let conversation = Conversation { session, allowed: AlwaysAllowed::default() };
        let session = Session {
            origin: Arc::new(request),
            conversation: Arc::new(AsyncMutex::new(conversation)),
            canceled: Arc::default(),
        };
        self.sessions().insert(opened.0.clone(), session);
        Ok(opened)
    }

    /// Returns the stored sessions of the project that contains `folder`, or all sessions.
    pub(crate) fn stored(&self, folder: Option<PathBuf>) -> Result<Vec<StoredSession>, Error> {
        folder.as_deref().map_or(Ok(()), check_folder)?;
        Ok(self.host.stored(folder))
    }

    /// Cancels the prompt of a session, waits until its reply is stored, and closes the session.
    pub(crate) async fn close(&self, id: &SessionId) -> Result<(), Error> {
        let session = self.sessions().remove(&*id.0).ok_or_else(|| unknown(id))?;
        session.canceled().cancel();
        drop(session.conversation.lock().await);
        Ok(())
    }

    /// Sets the worker of the following prompts.
    pub(crate) async fn set_mode(&self, id: &SessionId, mode: &str) -> Result<(), Error> {
        let session = self.sessions().get(&*id.0).cloned().ok_or_else(|| unknown(id))?;
        let mut conversation = session.conversation.lock().await;
        let Conversation { session: opened, allowed } = &mut *conversation;
        if opened.worker.mode == mode {
            return Ok(());
        }
        if !opened.modes.iter().any(|known| known == mode) {
            return Err(invalid(format!(
                "unknown mode `{mode}`; expected one of: {}",
                opened.modes.join(", ")
            )));
        }
        let opening = self.host.open_mode(&session.origin, mode);
        let worker = self.canceled.run_until_cancelled(opening).await;
        opened.worker =
            worker.unwrap_or_else(|| Err(String::from("canceled"))).map_err(|error| failed(&error))?;
        // Both belong to the tools and the server of the worker before.
        allowed.clear();
        opened.request.model = None;
        opened.store.store_mode(mode);
        Ok(())
    }

    /// Reserves a session for a prompt.
    pub(crate) fn start_prompt(&self, id: &SessionId) -> Result<Prompt, Error> {
        let session = self.sessions().get(&*id.0).cloned().ok_or_else(|| unknown(id))?;
        let conversation = Arc::clone(&session.conversation).try_lock_owned().map_err(|_| busy())?;
        let canceled = self.canceled.child_token();
        *session.canceled() = canceled.clone();
        Ok(Prompt { conversation, canceled })
    }

    /// Cancels the prompt of a session.
    pub(crate) fn cancel(&self, id: &SessionId) {
        if let Some(session) = self.sessions().get(&*id.0) {
            session.canceled().cancel();
        }
    }

    pub(crate) fn peer(&self, session_id: String, connection: ConnectionTo<Client>) -> Peer {
        Peer {
            session_id,
            connection,
            shows_notices: self.shows_notices.load(Ordering::Relaxed),
            progress: self.host.progress().clone(),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn canceled(&self) -> MutexGuard<'_, CancellationToken> {
        self.canceled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A prompt that can run.
pub(crate) struct Prompt {
    conversation: OwnedMutexGuard<Conversation>,
    canceled: CancellationToken,
}

impl Prompt {
    pub(crate) async fn run(mut self, peer: Peer, request: PromptRequest) -> Result<PromptResponse, Error> {
        let PromptRequest { prompt, meta, .. } = request;
        let session = &mut self.conversation.session;
        session.request.trace = meta.and_then(|meta| {
            let member = |name| meta.get(name).and_then(Value::as_str).unwrap_or_default();
            TraceContext::parse(member(TRACEPARENT), member(TRACESTATE))
        });
        let message = prompt_message(prompt).map_err(invalid)?;
        if matches!(&message, Message::User { content, .. } if content.trim().is_empty()) {
            return Err(invalid(String::from("the prompt is empty")));
        }
        for message in std::mem::take(&mut session.worker.notices) {
            peer.update(warning(&message));
        }
        let stop_reason = send(&mut self.conversation, &peer, message, &self.canceled).await?;
        Ok(PromptResponse::new(stop_reason))
    }
}

/// Returns the ID, the conversation and the modes of a session. A session with one worker has no modes.
fn opened(session: &OpenedSession) -> (String, Opened, Option<SessionModeState>) {
    let OpenedSession { id, modes, worker, request, .. } = session;
    let modes = (modes.len() > 1).then(|| {
        let modes = modes.iter().map(|name| SessionMode::new(name.clone(), name.clone()));
        SessionModeState::new(worker.mode.clone(), modes.collect())
    });
    let opened = Opened { messages: request.messages.clone(), kind_of: Arc::clone(&worker.kind_of) };
    (id.clone(), opened, modes)
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

fn check_folder(folder: &Path) -> Result<(), Error> {
    if folder.is_absolute() {
        return Ok(());
    }
    Err(invalid(format!("`cwd` is not an absolute path: {}", folder.display())))
}

fn unknown(id: &SessionId) -> Error {
    invalid(format!("unknown session `{id}`; open it with `session/new`, `session/load` or `session/resume`"))
}

fn busy() -> Error {
    invalid(String::from("another prompt of this session is not finished"))
}

/// Returns an error about the parameters of a request.
pub(crate) fn invalid(message: String) -> Error {
    Error::new(ErrorCode::INVALID_PARAMS, message)
}
