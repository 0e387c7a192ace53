//! Replies as servers really send them: `tests/wire/**`, read whole and in pieces.
#![allow(clippy::unwrap_used)]

mod damage;
mod errors;
mod limits;
mod offers;
mod read;
mod recorded;
mod said;
