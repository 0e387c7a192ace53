//! An agent of the [Agent Client Protocol](https://agentclientprotocol.com), version 1, on deftool workers.
//!
//! [`serve`] answers the requests of one client over a byte stream. A prompt is one request of a worker; its events become
//! session updates, its approvals become permission requests. A [`Host`] opens the sessions and stores their
//! conversations.
//!
//! ```
//! use deftool_acp::SessionRequest;
//!
//! let request = SessionRequest { folder: "/home/me/project".into(), id: None, servers: Vec::new() };
//! assert!(request.folder.is_absolute());
//! ```
//!
//! Invariants: prompts of one session run one after the other; a prompt that is canceled, or whose client is gone, ends
//! its request, and the received text is stored; a call that needs approval runs only after the client approved it.

mod host;
mod lines;
mod progress;
mod server;
mod sessions;
mod turn;
mod updates;

pub use host::{
    CallKind, ClientServer, ClientTransport, Host, OpenedSession, SessionRequest, SessionStore,
    SessionWorker, StoredSession,
};
pub use progress::{Progress, ProgressSender};
pub use server::serve;
