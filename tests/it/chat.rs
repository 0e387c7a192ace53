//! Replies as servers really send them: `tests/wire/**`, read whole and in pieces.
#![allow(clippy::unwrap_used)]

mod damage;
mod limits;
mod read;
mod recorded;
mod said;
