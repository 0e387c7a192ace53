//! Stands in for the crate of this name, which Luau's type checker (`luau-common`, `luau-vm`) takes its clock from.
//!
//! That one measures the processor's counter before `main`, in a loop that spins for 20 ms at least and far longer on a busy
//! machine (minstant 0.1.7, `src/tsc_now.rs`, a constructor): every start of deftool paid for it, checking types or not.

pub use std::time::Instant;
