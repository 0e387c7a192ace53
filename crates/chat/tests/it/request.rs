//! The request machine: one test per rule of the loop, then properties of random requests.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod coerce;
mod conversations;
mod hold_back;
mod journal;
mod messages;
mod parallel;
mod partial;
mod play;
mod prefixes;
mod properties;
mod repairs;
mod repeated_failures;
mod repetition;
mod reporting;
mod results;
mod rules;
mod signals;
mod text;
