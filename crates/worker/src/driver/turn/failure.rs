//! Error messages of a turn: the problem, the URL, and the next step.

use std::time::Duration;

use deftool_chat::request::{FailReason, Failure, FailureKind};
use deftool_chat::{Api, Dialect, ServerError, ServerErrorKind};
use deftool_lang::spec::WorkerSpec;
use deftool_lang::syntax::quoted;

use super::timers::MAX_DELAY;
use crate::endpoint::is_default_local_url;
use crate::time::seconds;
use crate::transport::{TransportError, api_path};

/// Converts a transport error into the failure of the request. `None`: the recorded request was canceled.
pub(super) fn of_transport(error: TransportError) -> Option<Failure> {
    let unknown = |kind, detail| Some(Failure::new(FailReason::UnknownError, kind, detail));
    match error {
        TransportError::Stopped { failure } => failure,
        TransportError::Differs { .. } => unknown(FailureKind::ReplayDiffers, error.to_string()),
        TransportError::Connect { message, .. } => {
            Some(Failure::new(FailReason::ConnectFailed, FailureKind::ConnectFailed, message))
        }
        TransportError::Broken { message } => unknown(FailureKind::StreamIncomplete, message),
    }
}

/// Whether the body of an error is a web page. Model servers do not send web pages.
pub(super) fn is_page(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|tag| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)))
}

/// The number of words of a message in a suggested row.
const SUGGESTED_WORDS: usize = 6;

/// An error response.
#[derive(Clone, Copy)]
pub(super) struct Refusal<'a> {
    pub(super) status: u16,
    pub(super) error: &'a ServerError,
    /// See [`is_page`].
    pub(super) is_page: bool,
    /// Whether the request contained credentials.
    pub(super) has_key: bool,
    /// The environment variable of the API key.
    pub(super) key_variable: &'a str,
    pub(super) location: Option<&'a str>,
    pub(super) retry_after: Option<Duration>,
    /// The dialect for which a row is suggested, if the error has no known meaning.
    pub(super) suggested: Option<Dialect>,
}

/// Returns the failure for an error status.
pub(super) fn of_status(url: &str, refusal: &Refusal<'_>) -> Failure {
    let Refusal { status, error, .. } = *refusal;
    let kind = match error.kind {
        ServerErrorKind::ContextOverflow => FailureKind::ContextOverflow,
        ServerErrorKind::Unauthorized => FailureKind::Unauthorized,
        ServerErrorKind::Unavailable
        | ServerErrorKind::Loading
        | ServerErrorKind::Temporary
        | ServerErrorKind::QuotaExhausted
        | ServerErrorKind::Rejected
        | ServerErrorKind::UnparsedCall
        | ServerErrorKind::NoTools
        | ServerErrorKind::Http
        | ServerErrorKind::Server => FailureKind::HttpError,
    };
    let message = if error.message == format!("HTTP status {status}") {
        String::new()
    } else {
        format!(": {}", error.message)
    };
    let advice = match status {
        // A proxy in front of a model server may report other errors as web pages.
        400 | 404 | 405 | 501 if refusal.is_page => String::from(
            "; a model server does not answer with a web page: check the endpoint, which usually ends in `/v1`",
        ),
        _ if error.kind == ServerErrorKind::Unauthorized && !refusal.has_key => {
            format!("; no API key was sent{}", advice(url, refusal))
        }
        _ => advice(url, refusal),
    };
    let row = suggested_row(refusal).unwrap_or_default();
    Failure::new(FailReason::UnknownError, kind, format!("{url}: HTTP {status}{message}{advice}{row}"))
}

/// Returns the row that would name an error without a known meaning.
fn suggested_row(refusal: &Refusal<'_>) -> Option<String> {
    let (dialect, error) = (refusal.suggested?.name(), refusal.error);
    let is_unknown = error.kind == ServerErrorKind::Http && error.changes.is_empty();
    let words = error.message.split_whitespace().take(SUGGESTED_WORDS).collect::<Vec<_>>().join(" ");
    is_unknown.then(|| {
        let words = quoted(&words);
        format!(
            "; if this is an error that deftool should know, name it: `(defdialect :name \"mine\" :like {dialect} :errors \
             ((:says [{words}] :means overflow)))`"
        )
    })
}

fn advice(url: &str, refusal: &Refusal<'_>) -> String {
    let Refusal { status, error, location, retry_after, .. } = *refusal;
    let advice = match (error.kind, status, location) {
        (ServerErrorKind::ContextOverflow, ..) => "; shorten the prompt or enlarge the context",
        (ServerErrorKind::Unauthorized, ..) => return advice_on_key(url, refusal.key_variable),
        (ServerErrorKind::NoTools, ..) => return String::from(advice_on_tools(&error.message)),
        (_, 300..400, Some(location)) => {
            let endpoint = Api::ALL
                .iter()
                .find_map(|api| location.strip_suffix(api_path(*api))?.strip_suffix('/'))
                .unwrap_or(location);
            return format!("; redirects are not followed: use {endpoint} as the endpoint");
        }
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

/// Returns the advice for a missing or wrong key, with the variable of the worker. By default, it is that of `OpenAI`'s
/// key, for each API.
fn advice_on_key(url: &str, variable: &str) -> String {
    let is_default = variable == WorkerSpec::named("").api_key_env;
    let other = if !is_default {
        ""
    } else if url.ends_with(api_path(Api::Messages)) {
        ", or name another variable with the worker's `:api-key-env`, such as ANTHROPIC_API_KEY"
    } else {
        ", or name another variable with the worker's `:api-key-env`"
    };
    let found = if is_default_local_url(url) {
        "; no key is sent to a server that deftool found on this machine by itself: set --endpoint, OPENAI_BASE_URL or the \
         worker's `:endpoint`"
    } else {
        ""
    };
    format!(
        "; set a valid key in {variable}{other} (a user and password in the endpoint replace the key){found}"
    )
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
    use deftool_chat::{Tables, classify_http_error};

    use super::*;

    fn refusal(error: &ServerError, status: u16) -> Refusal<'_> {
        Refusal {
            status,
            error,
            is_page: false,
            has_key: true,
            key_variable: "OPENAI_API_KEY",
            location: None,
            retry_after: None,
            suggested: None,
        }
    }

    #[test]
    fn a_redirect_message_contains_the_new_endpoint() {
        let url = "http://127.0.0.1:9/v1/chat/completions";
        let error = classify_http_error(Tables::default(), 307, b"");
        for (location, endpoint) in [
            ("https://h/v1/chat/completions", "https://h/v1"),
            ("http://h/v1/responses", "http://h/v1"),
            ("http://h/v1/messages", "http://h/v1"),
            ("http://h/login", "http://h/login"),
        ] {
            let refusal = Refusal { location: Some(location), ..refusal(&error, 307) };
            let Failure { detail, .. } = of_status(url, &refusal);
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
            let error = classify_http_error(Tables::default(), status, body.as_bytes());
            let Failure { kind, detail, .. } =
                of_status("http://h/v1/chat/completions", &refusal(&error, status));
            assert_eq!(detail.contains("set a valid key"), helps, "{detail}");
            assert_eq!(kind == FailureKind::Unauthorized.as_str(), helps, "{detail}");
        }
    }

    #[test]
    fn a_detected_server_must_be_configured_before_it_receives_a_key() {
        let error =
            classify_http_error(Tables::default(), 401, br#"{"error": {"message": "Invalid API Key"}}"#);
        for (url, is_found) in [
            ("http://127.0.0.1:8080/v1/chat/completions", true),
            ("http://127.0.0.1:8081/v1/chat/completions", false),
        ] {
            let refusal = Refusal { has_key: !is_found, ..refusal(&error, 401) };
            let Failure { detail, .. } = of_status(url, &refusal);
            let sent = if is_found { "no API key was sent; " } else { "" };
            assert!(
                detail.contains(&format!("HTTP 401: Invalid API Key; {sent}set "))
                    && detail.contains(":api-key-env"),
                "{detail}"
            );
            assert_eq!(detail.contains("set --endpoint"), is_found, "{detail}");
        }
    }

    #[test]
    fn the_variable_of_the_key_is_named() {
        let error = classify_http_error(Tables::default(), 401, br#"{"error": {"message": "no"}}"#);
        for (path, key_variable, setting) in [
            (
                "chat/completions",
                "OPENAI_API_KEY",
                "OPENAI_API_KEY, or name another variable with the worker's `:api-key-env` (",
            ),
            (
                "messages",
                "OPENAI_API_KEY",
                "OPENAI_API_KEY, or name another variable with the worker's `:api-key-env`, such as ANTHROPIC_API_KEY (",
            ),
            ("chat/completions", "LLM_KEY", "LLM_KEY ("),
            ("messages", "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY ("),
        ] {
            let refusal = Refusal { key_variable, ..refusal(&error, 401) };
            let Failure { detail, .. } = of_status(&format!("https://h/v1/{path}"), &refusal);
            assert!(detail.contains(&format!("; set a valid key in {setting}")), "{detail}");
        }
    }
}
