//! The worker from the outside: a scripted server on a real socket that misbehaves, fake tools, and where a socket
//! has no part a fake transport under a paused clock.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod ends;
mod recorded;
mod replay;
mod scripted;
mod secrets;
mod slots;
mod timers;
mod turns;
mod wire;
