//! The Model Context Protocol, as a server and as a client.
//!
//! A [`ToolServer`] offers the tools of a [`CatalogSource`] to one client on a stream, or to many over HTTP
//! ([`HttpServer`]). Arguments are validated before a call, and every failure of a call is a tool error with a text for
//! the model. A call uses the [`Catalog`] that is current at its start until its end.
//!
//! [`RemoteTools`] offers the tools of MCP servers to a worker. It keeps the connections, and connects again after one
//! was lost.
//!
//! The protocol itself (framing, versions, request ids) is implemented by `rmcp`, which only this crate uses.
//!
//! ```no_run
//! use deftool_mcp::{RemoteServer, ServerTransport, inspect};
//!
//! # async fn example() -> Result<(), String> {
//! let transport = ServerTransport::Http { url: "http://127.0.0.1:8000/mcp".into(), token: None, headers: Vec::new() };
//! let server = RemoteServer {
//!     name: "notes".into(), transport, tools: None, only: None, confirm: false, timeout: None,
//!     is_required: true, redact: Box::new(|_| {}),
//! };
//! println!("{:?}", inspect(&server).await?.listed.len());
//! # Ok(())
//! # }
//! ```
//!
//! Invariants: no token of a server leaves the client; a call stops when it is canceled, and when its session ends (on
//! stdin, some seconds after the end of the input); a call that needs approval runs only after the user approved it;
//! nothing is written to stdout except messages of the protocol; no server is contacted before
//! [`RemoteTools::connect`] or [`inspect`].

mod approval;
mod bounded;
mod caller;
mod catalog;
mod client;
mod events;
mod http;
mod lines;
mod membership;
mod server;
mod session;
mod turns;

pub use catalog::{Catalog, CatalogSource, CatalogTool};
pub use client::{
    ConnectError, Launch, Offer, Redact, RemoteServer, RemoteTools, Report, ServerProgram, ServerTransport,
    inspect,
};
pub use events::{CallEvent, CallEvents, LogLevel};
pub use http::HttpServer;
pub use server::{ApprovalMode, ToolServer};
pub use session::ServeError;
