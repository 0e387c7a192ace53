//! Journals: `resume` continues the requests that `run` and `rpc` stored, `requests` lists and removes them.

pub(super) mod requests;
pub(super) mod resume;
