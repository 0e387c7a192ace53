//! Calls written as text, family by family: the corpus in `tests/fallback`, read through the request machine.
//!
//! - `arguments` replaces the keys of arguments.
//! - `corpus` plays each specimen unchanged.
//! - `refusals` puts each call in positions where it must not be made.
//! - `streams` splits, stores and truncates replies.
//! - `quoted` and `text_calls` check that quoted calls stay text and real calls are made, also by the model that reads
//!   them.
//! - `table` prints the counts: `cargo test --test it -- fallback::table --nocapture`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod arguments;
mod corpus;
mod markup;
mod quoted;
mod read;
mod refusals;
mod streams;
mod table;
mod text_calls;
