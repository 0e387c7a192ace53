//! The trace that a command belongs to.

use deftool_lang::tool::TraceContext;

use crate::cli::outcome::environment;

/// Returns the span in `TRACEPARENT` and `TRACESTATE`. An invalid one is ignored.
pub(in crate::cli) fn caller() -> Option<TraceContext> {
    let state = environment("TRACESTATE").unwrap_or_default();
    TraceContext::parse(&environment("TRACEPARENT")?, &state)
}
