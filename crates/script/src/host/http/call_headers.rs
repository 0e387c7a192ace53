//! Headers that a request gets from its call. Headers that the script sets take precedence.

use deftool_lang::tool::{CallContext, TRACEPARENT, TRACESTATE};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// Adds the trace context of the call.
pub(super) fn add_trace(headers: &mut HeaderMap, context: &CallContext) {
    let Some(trace) = &context.trace else { return };
    // The two headers belong together.
    if headers.contains_key(TRACEPARENT) || headers.contains_key(TRACESTATE) {
        return;
    }
    insert(headers, TRACEPARENT, &trace.traceparent());
    if !trace.tracestate().is_empty() {
        insert(headers, TRACESTATE, trace.tracestate());
    }
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}
