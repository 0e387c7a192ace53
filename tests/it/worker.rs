//! The worker from the outside: a scripted server on a real socket that misbehaves, fake tools, and where a socket
//! has no part a fake transport under a paused clock.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod detect;
mod dialects;
mod drain;
mod ends;
#[cfg(unix)]
pub(crate) mod managed;
mod misbehaviours;
mod odd_recordings;
mod recorded;
mod redaction;
mod replay;
mod responses;
mod retries;
mod scripted;
mod secrets;
mod servers_page;
mod sessions;
mod slots;
mod swaps;
mod timers;
mod turns;
mod wire;
