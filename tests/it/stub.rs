//! The stub server: the language of its scenarios, its manners over HTTP, the command, and what the worker makes of every
//! misbehaviour.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client;
mod command;
mod language;
mod manners;
mod page;
mod responses;
