//! The commands, by running the real binary.

mod acp;
mod bench;
mod call;
mod chat;
mod check_watch;
mod ci;
mod compile;
mod diff;
mod doctor;
mod fix;
mod fmt;
mod fuzz;
mod import;
mod init;
mod inputs;
mod interface;
mod journal;
mod lsp;
pub(crate) mod managed;
mod mcp;
mod mcp_http;
mod mcp_servers;
mod otel;
#[cfg(unix)]
mod private_files;
mod replay;
mod report;
pub(crate) mod rpc;
mod run;
mod stub;
mod targets;
mod terminal;
mod test;
mod trace;
mod trust;
mod types;
mod view;
