//! Headers that a request gets from its call. Headers that the script sets take precedence.

use deftool_lang::tool::{CallContext, TRACEPARENT, TRACESTATE};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::request::Request;
use crate::host::state::Host;

/// The header by which a service recognises a repeated request.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Adds the headers of the call to a request.
pub(super) fn add(request: &mut Request, host: &Host) {
    add_trace(&mut request.headers, &host.context.borrow());
    // The other methods change nothing.
    let is_safe = matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS);
    if !is_safe && !request.headers.contains_key(IDEMPOTENCY_KEY) {
        let value = host.next_idempotency_key().and_then(|key| HeaderValue::try_from(key).ok());
        value.map(|value| request.headers.insert(IDEMPOTENCY_KEY, value));
    }
}

fn add_trace(headers: &mut HeaderMap, context: &CallContext) {
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
