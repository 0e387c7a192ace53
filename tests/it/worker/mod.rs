//! The worker from the outside, with fake tools: with a scripted server on a real socket and injected faults, or with a
//! fake transport and a paused clock.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod approvals;
mod bios;
mod body_fallbacks;
mod damaged_recordings;
mod detect;
mod dialect_examples;
mod dialects;
mod drain;
mod ends;
mod faults;
pub(crate) mod harness;
mod images;
mod layouts;
mod library;
mod lost;
mod observer;
mod record;
mod recorded;
mod redaction;
mod replay;
mod retries;
mod rules;
mod scripted;
mod secrets;
mod servers_page;
mod sessions;
pub(crate) mod simulation;
mod slots;
mod streams;
mod timers;
mod turns;
mod wire;
