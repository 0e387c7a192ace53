//! The commands, by running the real binary.

mod acp;
mod bench;
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
mod inputs;
mod lsp;
pub(crate) mod managed;
mod mcp;
mod mcp_servers;
mod replay;
mod report;
pub(crate) mod rpc;
mod run;
mod stub;
mod targets;
mod terminal;
mod test;
mod trust;
mod types;
