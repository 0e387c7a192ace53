//! The stub server: the command and its documentation page.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod command;
mod page;
