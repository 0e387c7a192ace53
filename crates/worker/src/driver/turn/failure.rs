//! Error messages of a turn: the problem, the URL, and the next step.

use std::time::Duration;

use deftool_chat::request::{FailReason, Failure, kind};
use deftool_chat::{Api, ServerError, ServerErrorKind, refuses_tools};

use super::timers::MAX_DELAY;
use crate::endpoint::is_default_local_url;
use crate::time::seconds;
use crate::transport::{TransportError, api_path};

/// Converts a transport error into the failure of the request. `None`: the recorded request was canceled.
pub(super) fn of_transport(error: TransportError) -> Option<Failure> {
    let unknown = |kind, detail| Some(Failure::new(FailReason::UnknownError, kind, detail));
    match error {
        TransportError::Stopped { failure } => failure,
        TransportError::Differs { .. } => unknown(kind::REPLAY_DIFFERS, error.to_string()),
        TransportError::Connect { message, .. } => {
            Some(Failure::new(FailReason::ConnectFailed, kind::CONNECT_FAILED, message))
        }
        TransportError::Broken { message } => unknown(kind::STREAM_INCOMPLETE, message),
    }
}

/// Whether the body of an error is a web page. Model servers do not send web pages.
pub(super) fn is_page(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|tag| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)))
}

/// Returns the failure for an error status. `is_page`: see [`is_page`]. `has_key`: whether the request contained
/// credentials.
pub(super) fn of_status(
    url: &str,
    status: u16,
    error: &ServerError,
    (is_page, has_key): (bool, bool),
    location: Option<&str>,
    retry_after: Option<Duration>,
) -> Failure {
    let kind = match error.kind {
        ServerErrorKind::ContextOverflow => kind::CONTEXT_OVERFLOW,
        ServerErrorKind::Unauthorized
        | ServerErrorKind::Unavailable
        | ServerErrorKind::QuotaExhausted
        | ServerErrorKind::Http
        | ServerErrorKind::Server => kind::HTTP_ERROR,
    };
    let message = if error.message == format!("HTTP status {status}") {
        String::new()
    } else {
        format!(": {}", error.message)
    };
    let advice = match status {
        // A proxy in front of a model server may report other errors as web pages.
        400 | 404 | 405 | 501 if is_page => String::from(
            "; a model server does not answer with a web page: check the endpoint, which usually ends in `/v1`",
        ),
        _ if error.kind == ServerErrorKind::Unauthorized && !has_key => {
            format!("; no API key was sent{}", advice(url, status, error, location, retry_after))
        }
        _ => advice(url, status, error, location, retry_after),
    };
    Failure::new(FailReason::UnknownError, kind, format!("{url}: HTTP {status}{message}{advice}"))
}

fn advice(
    url: &str,
    status: u16,
    error: &ServerError,
    location: Option<&str>,
    retry_after: Option<Duration>,
) -> String {
    let advice = match (error.kind, status, location) {
        (ServerErrorKind::ContextOverflow, ..) => "; shorten the prompt or enlarge the context",
        (ServerErrorKind::Unauthorized, ..) if is_default_local_url(url) => {
            "; set a valid key in OPENAI_API_KEY or in the variable that `:api-key-env` names (a user and password in \
             the endpoint replace the key); no key is sent to a server that deftool found on this machine by itself: set \
             --endpoint, OPENAI_BASE_URL or the worker's `:endpoint`"
        }
        (ServerErrorKind::Unauthorized, ..) => {
            "; set a valid key in OPENAI_API_KEY or in the variable that `:api-key-env` names (a user and password in \
             the endpoint replace the key)"
        }
        (_, 300..400, Some(location)) => {
            let endpoint = Api::ALL
                .iter()
                .find_map(|api| location.strip_suffix(api_path(*api))?.strip_suffix('/'))
                .unwrap_or(location);
            return format!("; redirects are not followed: use {endpoint} as the endpoint");
        }
        _ if refuses_tools(&error.message) => return String::from(advice_on_tools(&error.message)),
        (ServerErrorKind::QuotaExhausted, ..) => {
            "; the quota of the account is used up: add credits, or raise its limit"
        }
        (_, 402, _) => "; add credits to the account",
        (_, 404 | 405 | 501, _) if url.ends_with(api_path(Api::Responses)) => {
            "; check the model name and the endpoint, which usually ends in `/v1`; remove `:api responses` from the worker \
             if the server does not support the Responses API"
        }
        (_, 404 | 405 | 501, _) if url.ends_with(api_path(Api::Messages)) => {
            "; check the model name and the endpoint, which usually ends in `/v1`; set the worker's `:api` to \
             `chat-completions` or `responses` if the server does not support the Messages API"
        }
        (_, 404 | 405, _) => "; check the model name and the endpoint, which usually ends in `/v1`",
        (_, 408 | 409 | 425 | 429 | 500.., _) if retry_after.is_some() => {
            return retry_after.map(advice_on_delay).unwrap_or_default();
        }
        (_, 408 | 409 | 425 | 429 | 503 | 529, _) => "; try again later",
        (_, 500.., _) => "; check the server's log",
        (_, _, _) => "",
    };
    String::from(advice)
}

/// Returns the advice for a server that requested a delay.
fn advice_on_delay(wait: Duration) -> String {
    let requested = format!("; the server requested a delay of {}", seconds(wait));
    if wait > MAX_DELAY {
        format!("{requested}, more than the limit of {}", seconds(MAX_DELAY))
    } else {
        requested
    }
}

/// Returns the advice for a model without tool support.
fn advice_on_tools(message: &str) -> &'static str {
    if message.contains("--enable-auto-tool-choice") {
        "; start vLLM with these options, or set the worker's `:fallback` to `on` to describe the tools in \
         the prompt"
    } else if message.contains("--jinja") {
        "; start llama-server with --jinja, or set the worker's `:fallback` to `on` to describe the tools in \
         the prompt"
    } else {
        "; use a model that supports tool calls, or set the worker's `:fallback` to `on` to describe the tools in \
         the prompt"
    }
}

#[cfg(test)]
mod tests {
    use deftool_chat::classify_http_error;

    use super::*;

    #[test]
    fn a_redirect_message_contains_the_new_endpoint() {
        let url = "http://127.0.0.1:9/v1/chat/completions";
        let error = classify_http_error(307, b"");
        for (location, endpoint) in [
            ("https://h/v1/chat/completions", "https://h/v1"),
            ("http://h/v1/responses", "http://h/v1"),
            ("http://h/v1/messages", "http://h/v1"),
            ("http://h/login", "http://h/login"),
        ] {
            let Failure { detail, .. } = of_status(url, 307, &error, (false, true), Some(location), None);
            assert!(detail.ends_with(&format!("use {endpoint} as the endpoint")), "{location}: {detail}");
        }
    }

    #[test]
    fn a_key_is_suggested_only_for_authentication_errors() {
        for (status, body, helps) in [
            (401, r#"{"error": {"message": "no"}}"#, true),
            (403, r#"{"error": {"message": "no"}}"#, true),
            (403, r#"{"error": {"message": "flagged", "metadata": {"reasons": ["violence"]}}}"#, false),
        ] {
            let error = classify_http_error(status, body.as_bytes());
            let Failure { detail, .. } =
                of_status("http://h/v1/chat/completions", status, &error, (false, true), None, None);
            assert_eq!(detail.contains("set a valid key"), helps, "{detail}");
        }
    }

    #[test]
    fn a_detected_server_must_be_configured_before_it_receives_a_key() {
        let refusal = classify_http_error(401, br#"{"error": {"message": "Invalid API Key"}}"#);
        for (url, is_found) in [
            ("http://127.0.0.1:8080/v1/chat/completions", true),
            ("http://127.0.0.1:8081/v1/chat/completions", false),
        ] {
            let Failure { detail, .. } = of_status(url, 401, &refusal, (false, !is_found), None, None);
            let sent = if is_found { "no API key was sent; " } else { "" };
            assert!(
                detail.contains(&format!("HTTP 401: Invalid API Key; {sent}set "))
                    && detail.contains(":api-key-env"),
                "{detail}"
            );
            assert_eq!(detail.contains("set --endpoint"), is_found, "{detail}");
        }
    }
}
