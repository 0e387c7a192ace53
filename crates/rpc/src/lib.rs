//! The tools and workers of a project for another program: JSON-RPC 2.0 over a byte stream.
//!
//! [`serve`] answers the requests of one client. [`protocol`] contains the methods with their parameters and results.
//! All requests are answered concurrently, so a client can cancel a call while it runs.
//!
//! | method | |
//! |---|---|
//! | `list`, `check`, `compile` | the project, as in `deftool tools`, `check` and `compile` |
//! | `needs_approval`, `call` | one call of a tool, without a model |
//! | `submit`, `events`, `result`, `cancel` | requests to a model |
//! | `shutdown` | ends the server |
//!
//! The server sends the notifications `event`, `log`, `progress` and `reloaded`, and the request `approve`.
//!
//! A [`Host`] opens the workers: it resolves servers, keys and permissions.
//!
//! ```
//! use deftool_rpc::protocol::SubmitParams;
//!
//! let params: SubmitParams = serde_json::from_str(r#"{"prompt": "Hello", "worker": "local"}"#)?;
//! assert_eq!(params.prompt.as_deref(), Some("Hello"));
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! Invariants: a call stops when it is canceled or its client disconnects; a call that needs approval runs only after
//! the client approved it; all queues are bounded, so requests wait for a client that does not read; messages that are
//! ready together are written together, in their order; when the client disconnects, all calls, requests and managed servers end.

mod calls;
mod client;
#[cfg(feature = "definitions")]
pub mod definitions;
mod host;
mod output;
mod project;
pub mod protocol;
mod requests;
mod script_events;
mod server;
mod session;
mod workers;

pub use host::{ChosenWorker, ContinueRequest, Host, OpenedWorker};
pub use script_events::{ScriptEvents, script_events};
pub use server::serve;
