//! What went wrong with a turn, in words: what was found, where, and what to do next.

use std::time::Duration;

use crate::chat::{Api, ServerError, ServerErrorKind, refuses_tools};
use crate::request::{FailReason, Failure, kind};
use crate::worker::drive::seconds;
use crate::worker::endpoint::is_usual_place;
use crate::worker::transport::{TransportError, api_path};

/// Returns the failure that a transport error ends the request with. `None`: the recorded request was canceled.
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

/// Whether the body of an error is a web page, which no model server answers with.
pub(super) fn is_page(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|tag| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)))
}

/// How a status that is no success ends a request. `is_page`: see [`is_page`].
pub(super) fn of_status(
    url: &str,
    status: u16,
    error: &ServerError,
    is_page: bool,
    location: Option<&str>,
    retry_after: Option<Duration>,
) -> Failure {
    let kind = match error.kind {
        ServerErrorKind::ContextOverflow => kind::CONTEXT_OVERFLOW,
        ServerErrorKind::Unauthorized
        | ServerErrorKind::Unavailable
        | ServerErrorKind::Http
        | ServerErrorKind::Server => kind::HTTP_ERROR,
    };
    let said = if error.message == format!("HTTP status {status}") {
        String::new()
    } else {
        format!(": {}", error.message)
    };
    let advice = match status {
        // Other errors are told in web pages by what may stand before a model server, too.
        400 | 404 | 405 | 501 if is_page => String::from(
            "; a web page is no model server's answer: check the endpoint, which ends in /v1 as a rule",
        ),
        _ => advice(url, status, error, location, retry_after),
    };
    Failure::new(FailReason::UnknownError, kind, format!("{url}: HTTP {status}{said}{advice}"))
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
        (ServerErrorKind::Unauthorized, ..) if is_usual_place(url) => {
            "; set the right key in OPENAI_API_KEY or in the variable that :api-key-env names (a user and password in the \
             endpoint are sent in its place); a server that was only \
             found on this machine is sent none: name it by --endpoint, OPENAI_BASE_URL or the worker's :endpoint"
        }
        (ServerErrorKind::Unauthorized, ..) => {
            "; set the right key in OPENAI_API_KEY or in the variable that :api-key-env names (a user and password in the \
             endpoint are sent in its place)"
        }
        (_, 300..400, Some(location)) => {
            let endpoint = [Api::ChatCompletions, Api::Responses]
                .iter()
                .find_map(|api| location.strip_suffix(api_path(*api))?.strip_suffix('/'))
                .unwrap_or(location);
            return format!("; it redirects, which is not followed: give {endpoint} as the endpoint");
        }
        _ if refuses_tools(&error.message) => return String::from(advice_on_tools(&error.message)),
        (_, 402, _) => "; add credits to the account",
        (_, 404 | 405 | 501, _) if url.ends_with(api_path(Api::Responses)) => {
            "; check the model's name and the endpoint, which ends in /v1 as a rule; a server without the Responses \
             API needs a worker without `:api responses`"
        }
        (_, 404 | 405, _) => "; check the model's name and the endpoint, which ends in /v1 as a rule",
        (_, 408 | 409 | 429 | 503, _) => {
            return match retry_after {
                Some(wait) => format!("; the server asks to wait {}", seconds(wait)),
                None => String::from("; try again later"),
            };
        }
        (_, 500.., _) => "; the server's log may say more",
        (_, _, _) => "",
    };
    String::from(advice)
}

/// What helps a server whose model takes no tools.
fn advice_on_tools(message: &str) -> &'static str {
    if message.contains("--enable-auto-tool-choice") {
        "; start vLLM with those, or set the worker's :fallback to on, which tells the tools in the text"
    } else if message.contains("--jinja") {
        "; start llama-server with --jinja, or set the worker's :fallback to on, which tells the tools in the text"
    } else {
        "; take a model made for tool calls, or set the worker's :fallback to on, which tells the tools in the text"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::classify_http_error;

    #[test]
    fn a_redirect_is_told_as_an_endpoint_that_can_be_given() {
        let url = "http://127.0.0.1:9/v1/chat/completions";
        let error = classify_http_error(307, b"");
        for (location, endpoint) in [
            ("https://h/v1/chat/completions", "https://h/v1"),
            ("http://h/v1/responses", "http://h/v1"),
            ("http://h/login", "http://h/login"),
        ] {
            let Failure { detail, .. } = of_status(url, 307, &error, false, Some(location), None);
            assert!(detail.ends_with(&format!("give {endpoint} as the endpoint")), "{location}: {detail}");
        }
    }

    #[test]
    fn a_key_is_asked_for_where_one_would_help() {
        for (status, body, helps) in [
            (401, r#"{"error": {"message": "no"}}"#, true),
            (403, r#"{"error": {"message": "no"}}"#, true),
            (403, r#"{"error": {"message": "flagged", "metadata": {"reasons": ["violence"]}}}"#, false),
        ] {
            let error = classify_http_error(status, body.as_bytes());
            let Failure { detail, .. } =
                of_status("http://h/v1/chat/completions", status, &error, false, None, None);
            assert_eq!(detail.contains("set the right key"), helps, "{detail}");
        }
    }

    #[test]
    fn a_server_that_was_only_found_wants_to_be_named_before_it_is_sent_a_key() {
        let refusal = classify_http_error(401, br#"{"error": {"message": "Invalid API Key"}}"#);
        for (url, is_found) in [
            ("http://127.0.0.1:8080/v1/chat/completions", true),
            ("http://127.0.0.1:8081/v1/chat/completions", false),
        ] {
            let Failure { detail, .. } = of_status(url, 401, &refusal, false, None, None);
            assert!(
                detail.contains("HTTP 401: Invalid API Key; ") && detail.contains(":api-key-env"),
                "{detail}"
            );
            assert_eq!(detail.contains("name it by --endpoint"), is_found, "{detail}");
        }
    }
}
