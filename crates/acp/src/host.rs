//! The interface that the host program implements for the agent.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::v1::schema::ToolKind;
use deftool_chat::Message;
use deftool_chat::request::Event;
use deftool_worker::{SubmitRequest, Worker};
use futures_util::future::BoxFuture;

use crate::progress::ProgressSender;

/// Opens sessions.
pub trait Host: Send + Sync + 'static {
    /// Opens a session. The error is a message for the user.
    fn open(&self, request: SessionRequest) -> BoxFuture<'_, Result<OpenedSession, String>>;

    /// Opens the worker of a mode for a session that was opened with `request`. The error is a message for the user.
    fn open_mode<'a>(
        &'a self,
        request: &'a SessionRequest,
        mode: &'a str,
    ) -> BoxFuture<'a, Result<SessionWorker, String>>;

    /// Returns the stored sessions of the project that contains `folder`, or all sessions, last change first.
    fn stored(&self, folder: Option<PathBuf>) -> Vec<StoredSession>;

    /// Returns the sender of the tools' progress.
    fn progress(&self) -> &ProgressSender;

    /// Stops the workers of all sessions. Called once, after the last prompt has ended.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRequest {
    /// The absolute path of the folder in which the user works.
    pub folder: PathBuf,
    /// The stored session to load; `None`: a new session.
    pub id: Option<String>,
    /// MCP servers whose tools the client adds to those of the worker.
    pub servers: Vec<ClientServer>,
}

/// An MCP server that the client configured.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientServer {
    /// The name. Its tools are called `NAME__TOOL`.
    pub name: String,
    /// How to reach it.
    pub transport: ClientTransport,
}

/// How to reach an MCP server of the client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ClientTransport {
    /// A program that is started.
    Program {
        /// The program and its arguments.
        command: Vec<String>,
        /// Additional environment variables.
        env: Vec<(String, String)>,
    },
    /// A transport that the agent does not announce. The session opens without the server.
    Unsupported,
}

/// An open session.
pub struct OpenedSession {
    /// Identifies the session when a client loads it.
    pub id: String,
    /// The modes among which the client may choose: the names of the project's workers.
    pub modes: Vec<String>,
    /// Answers the prompts.
    pub worker: SessionWorker,
    /// The conversation so far, and the settings of its requests.
    pub request: SubmitRequest,
    /// Stores the conversation.
    pub store: Box<dyn SessionStore>,
}

/// The worker of a session.
pub struct SessionWorker {
    /// Its mode.
    pub mode: String,
    /// The worker.
    pub worker: Worker,
    /// Returns what a tool does, for the client's icons.
    pub kind_of: Arc<dyn Fn(&str) -> CallKind + Send + Sync>,
    /// Messages for the user, such as a server that cannot be used. Shown at the next prompt.
    pub notices: Vec<String>,
}

/// What a tool does, at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallKind {
    /// Starts programs.
    Execute,
    /// Writes files.
    Edit,
    /// Sends requests to other hosts.
    Fetch,
    /// Reads files.
    Read,
    /// Something else.
    #[default]
    Other,
}

impl From<CallKind> for ToolKind {
    fn from(kind: CallKind) -> Self {
        match kind {
            CallKind::Execute => Self::Execute,
            CallKind::Edit => Self::Edit,
            CallKind::Fetch => Self::Fetch,
            CallKind::Read => Self::Read,
            CallKind::Other => Self::Other,
        }
    }
}

/// A session that can be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// Its ID.
    pub id: String,
    /// The folder of its project, absolute.
    pub folder: PathBuf,
    /// Its first prompt.
    pub title: String,
    /// The time of the last change, in the format of RFC 3339.
    pub changed: String,
}

/// Stores the conversation of a session.
pub trait SessionStore: Send {
    /// Replaces the stored conversation.
    fn store(&mut self, messages: &[Message]);

    /// Adds an event of a reply that is not complete. The next [`store`](Self::store) includes the reply.
    fn store_event(&mut self, event: &Event);

    /// Stores the mode of the following prompts.
    fn store_mode(&mut self, mode: &str);
}
