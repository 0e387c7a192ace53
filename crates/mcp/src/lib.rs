//! Serves tools over the Model Context Protocol.
//!
//! A [`ToolServer`] offers the tools of a [`CatalogSource`] to one client on a stream, or to many over HTTP. Arguments are validated before a call, and
//! every failure of a call is a tool error with a text for the model. A call uses the [`Catalog`] that is current at
//! its start until its end. The protocol itself (framing, versions, request ids) is implemented by `rmcp`, which only
//! this crate uses.
//!
//! Invariants: a call that is canceled, or whose client is gone, is dropped, which stops it; a call that needs approval
//! runs only after the user approved it; nothing is written to stdout except messages of the protocol.

mod approval;
mod catalog;
mod events;
mod http;
mod server;
mod session;

pub use catalog::{Catalog, CatalogSource, CatalogTool};
pub use events::{CallEvent, CallEvents, LogLevel};
pub use http::HttpServer;
pub use server::{ApprovalMode, ServeError, ToolServer};
