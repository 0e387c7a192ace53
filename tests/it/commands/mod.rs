//! The commands, by running the real binary.

mod acp;
mod analyze;
mod batch;
mod chat;
mod check_watch;
mod ci;
mod doctor;
mod doors;
#[cfg(unix)]
mod eval;
mod fix;
mod fmt;
mod images;
mod import;
mod init;
mod interface;
mod journal;
mod lsp;
mod lsp_scripts;
mod lsp_session;
pub(crate) mod managed;
mod mcp;
mod mcp_answers;
mod mcp_counts;
mod mcp_http;
mod mcp_items;
mod mcp_servers;
mod measure;
mod otel;
mod pages;
#[cfg(unix)]
mod private_files;
mod repairs;
mod replay;
mod reply_state;
mod report;
pub(crate) mod rpc;
mod run;
mod stored;
mod stub;
mod targets;
mod terminal;
mod test;
mod trace;
mod trust;
mod view;
