//! Servers that ship with deftool.
//!
//! [`stub`] is a stub model server for tests. It listens on a real socket and can inject every known server fault.

pub mod stub;
