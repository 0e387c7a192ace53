//! The stub server: the scenario language, HTTP, the command, and its documentation page.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client;
mod command;
mod http;
mod language;
mod page;
mod responses;
