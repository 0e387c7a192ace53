//! Record and replay.
