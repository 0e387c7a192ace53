//! Decoding of recorded replies in `tests/wire/**`, as a whole and in pieces.
#![allow(clippy::unwrap_used)]

mod damage;
mod errors;
mod events;
mod limits;
mod offers;
mod read;
mod recorded;
mod rejections;
