//! The Language Server Protocol for deftool projects.
//!
//! [`serve`] runs a server over a byte stream. It converts between the protocol and `deftool-ide`, which computes all
//! features. The server is single-threaded, apart from a thread that reads messages, one for each project that watches its
//! files, and one that waits for the analyzer of scripts: all changes that have arrived are applied before the next load,
//! and requests that were canceled in the meantime are not computed.
//!
//! ```
//! let input = b"Content-Length: 33\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}";
//! let mut output = Vec::new();
//! let analyzer = Err(String::from("no analyzer"));
//! let end = deftool_lsp::serve(&input[..], &mut output, "0.1.0", analyzer);
//! assert_eq!(end, deftool_lsp::End::WithoutShutdown);
//! ```
//!
//! The server executes nothing. It sends commands to call and test tools as code lenses, and the editor runs them.

mod analysis;
mod convert;
mod documents;
mod file;
mod locations;
mod position;
mod requests;
mod server;
mod settings;
mod state;
mod type_findings;
mod workspace;

pub use server::{End, serve};
