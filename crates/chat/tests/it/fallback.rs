//! Calls written as text, family by family: the corpus in `tests/fallback`, read through the request machine.
//!
//! `corpus` plays each specimen as it stands, `refusals` puts each call where it must not be made, `streams` cuts,
//! stores and truncates, `quoted` tells quoted calls from made ones, `table` counts it all: `cargo test --test it -- fallback::table --nocapture`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod corpus;
mod markup;
mod quoted;
mod read;
mod refusals;
mod streams;
mod table;
