//! The interface that the host program implements for the agent.

use std::path::PathBuf;

use deftool_chat::Message;
use deftool_chat::request::Event;
use deftool_worker::{SubmitRequest, Worker};
use futures_util::future::BoxFuture;

/// Opens sessions.
pub trait Host: Send + Sync + 'static {
    /// Opens a session. The error is a message for the user.
    fn open(&self, request: SessionRequest) -> BoxFuture<'_, Result<OpenedSession, String>>;

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
    /// Answers the prompts.
    pub worker: Worker,
    /// The conversation so far, and the settings of its requests.
    pub request: SubmitRequest,
    /// Stores the conversation.
    pub store: Box<dyn SessionStore>,
    /// Messages for the user, such as a server that cannot be used. Shown at the first prompt.
    pub notices: Vec<String>,
}

/// Stores the conversation of a session.
pub trait SessionStore: Send {
    /// Replaces the stored conversation.
    fn store(&mut self, messages: &[Message]);

    /// Adds an event of a reply that is not complete. The next [`store`](Self::store) includes the reply.
    fn store_event(&mut self, event: &Event);
}
