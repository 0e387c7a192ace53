//! The request machine: one test for each rule of the loop, then properties over random worlds.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod conversations;
mod play;
mod properties;
mod repetition;
mod rules;
mod text;
mod together;
mod told;
mod written;
