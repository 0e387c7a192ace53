//! HTTP errors that gateways wrap.

use deftool_chat::{ServerErrorKind, Tables, classify_http_error};
use serde_json::json;

#[test]
fn the_cause_inside_a_gateway_error_determines_the_kind() {
    let raw = json!({"error": {"message": "too much", "code": "context_length_exceeded"}}).to_string();
    let wrapped = |raw: &str| {
        json!({"error": {"message": "Provider returned error", "code": 400,
            "metadata": {"provider_name": "P", "raw": raw}}})
    };
    for (status, body, kind, message) in [
        (400, wrapped(&raw), ServerErrorKind::ContextOverflow, "Provider returned error: P: too much"),
        (400, wrapped("nope"), ServerErrorKind::Http, "Provider returned error: P: nope"),
        (503, wrapped("busy"), ServerErrorKind::Unavailable, "Provider returned error: P: busy"),
        (429, wrapped("busy"), ServerErrorKind::Unavailable, "Provider returned error: P: busy"),
        (
            422,
            json!({"detail": [{"loc": ["body", "messages", 0, "role"], "msg": "field required"}]}),
            ServerErrorKind::Http,
            "field required (messages.role)",
        ),
    ] {
        let error = classify_http_error(Tables::default(), status, body.to_string().as_bytes());
        assert_eq!((error.kind, error.message.as_str()), (kind, message), "{body}");
    }
}
