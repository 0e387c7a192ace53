//! Errors that a server reports: the body of an HTTP error, or an error inside a stream.
//!
//! In: a status with a body, or the JSON of an error. Out: a [`ServerError`] with its kind, one message of at most 2
//! KiB without control characters, and its code.
//!
//! Retries are not part of this module. The worker decides them by kind and code.

use deftool_lang::text::is_readable;
use serde_json::{Map, Value};

use crate::dialect::{ErrorMeaning, Report, Tables};
use crate::event::{ServerError, ServerErrorKind};

/// Maximum length of a message, and of the part of a body that is kept for one.
pub(super) const MAX_MESSAGE_BYTES: usize = 2 * 1024;

/// Classifies an HTTP answer whose status is not 2xx, by the rows of its tables. The message is that of an `error` object,
/// `message` or `detail`, an `error` string, the title of an HTML page, or plain text.
pub fn classify_http_error(tables: Tables, status: u16, body: &[u8]) -> ServerError {
    let report = ErrorReport { code: Some(status), ..ErrorReport::of(body) };
    let error = report.explain(tables, ServerErrorKind::Http, body);
    let message = if error.message.is_empty() { format!("HTTP status {status}") } else { error.message };
    ServerError { message, ..error }
}

/// Returns the parts of an error that rows are compared with.
#[cfg(test)]
pub(crate) fn report_of(status: u16, body: &[u8]) -> Report {
    let report = ErrorReport { code: Some(status), ..ErrorReport::of(body) };
    Report { status: report.code, codes: report.labels, message: report.message }
}

/// Classifies an error inside a stream (HTTP status 200), from JSON or plain text.
pub(super) fn classify_stream_error(tables: Tables, data: &[u8]) -> ServerError {
    let error = ErrorReport::of(data).explain(tables, ServerErrorKind::Server, data);
    let message = if error.message.is_empty() {
        String::from("the server reported an error without a message")
    } else {
        error.message
    };
    ServerError { message, ..error }
}

/// Returns the start of a body as text for a message: the title of an HTML page, or the text, sanitised and truncated.
/// Compressed bytes are replaced by a description, because some proxies compress although it was not requested.
pub(super) fn text_of_body(body: &[u8]) -> String {
    // The first two bytes of every gzip member (RFC 1952, 2.3.1).
    if body.starts_with(&[0x1f, 0x8b]) {
        return String::from("gzip-compressed data, which was not requested");
    }
    text_of_page(&String::from_utf8_lossy(body))
}

fn text_of_page(body: &str) -> String {
    // The title of a page is near its start.
    let start = body.char_indices().nth(64 * 1024).map_or(body, |(end, _)| body.get(..end).unwrap_or(body));
    if !start.trim_start().starts_with('<') {
        return sanitize(start);
    }
    let lower = start.to_ascii_lowercase();
    let title = ["title", "h1"].iter().find_map(|tag| {
        let from = lower.find(&format!("<{tag}"))?;
        let from = from + lower.get(from..)?.find('>')? + 1;
        let to = from + lower.get(from..)?.find(&format!("</{tag}"))?;
        start.get(from..to).map(sanitize).filter(|text| !text.is_empty())
    });
    title.unwrap_or_else(|| sanitize(&without_tags(start)))
}

/// The contents of an error's JSON.
#[derive(Debug, Default)]
struct ErrorReport {
    message: String,
    /// The types, codes, statuses and other identifiers.
    labels: Vec<String>,
    code: Option<u16>,
    failed_generation: Option<String>,
    /// The input was rejected by a moderation filter.
    is_flagged: bool,
}

impl ErrorReport {
    fn of(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => {
                let mut report = Self::default();
                report.read(&value, 0);
                report
            }
            Err(_) => Self { message: text_of_body(body), ..Self::default() },
        }
    }

    /// Compares the error with the rows. `kind`: that of an error without a row.
    fn explain(self, tables: Tables, kind: ServerErrorKind, body: &[u8]) -> ServerError {
        let report = Report { status: self.code, codes: self.labels, message: self.message };
        let (meaning, changes) = tables.explain(&report);
        let kind = match meaning {
            // A different key would not help.
            Some(ErrorMeaning::Unauthorized) if self.is_flagged => kind,
            Some(ErrorMeaning::Overflow) => ServerErrorKind::ContextOverflow,
            Some(ErrorMeaning::Quota) => ServerErrorKind::QuotaExhausted,
            Some(ErrorMeaning::Busy) => ServerErrorKind::Unavailable,
            Some(ErrorMeaning::Temporary) => ServerErrorKind::Temporary,
            Some(ErrorMeaning::Loading) => ServerErrorKind::Loading,
            Some(ErrorMeaning::Unauthorized) => ServerErrorKind::Unauthorized,
            Some(ErrorMeaning::Rejected) => ServerErrorKind::Rejected,
            Some(ErrorMeaning::UnparsedCall) => ServerErrorKind::UnparsedCall,
            Some(ErrorMeaning::NoTools) => ServerErrorKind::NoTools,
            None => kind,
        };
        let delay = || {
            let value = serde_json::from_slice(body).unwrap_or_default();
            tables.delay(&value, &report.message)
        };
        let is_temporary = matches!(kind, ServerErrorKind::Unavailable | ServerErrorKind::Temporary);
        let wait = is_temporary.then(delay).flatten();
        ServerError {
            kind,
            code: self.code,
            failed_generation: self.failed_generation,
            changes: changes.into(),
            retry_after_ms: wait.map(|wait| u32::try_from(wait.as_millis()).unwrap_or(u32::MAX)),
            message: report.message,
        }
    }

    /// Reads an error. Gateways nest errors: the innermost one is used.
    fn read(&mut self, value: &Value, depth: usize) {
        // Gemini wraps its error in a list. FastAPI lists an error for each invalid member.
        let (value, others) = match value.as_array().and_then(|items| items.split_first()) {
            Some((first, others)) => (first, others),
            None => (value, [].as_slice()),
        };
        match value {
            Value::Object(members) => {
                for name in ["type", "code", "status", "status_code"] {
                    self.read_label(members.get(name));
                }
                // Anthropic: `details.error_code`. Google: `details[].violations[].quotaId`.
                self.read_label(members.get("details").and_then(|details| details.get("error_code")));
                self.read_quotas(members.get("details"));
                if let Some(Value::String(text)) = members.get("failed_generation") {
                    self.failed_generation = Some(text.clone());
                }
                match inner_error(members) {
                    Some(inner) if depth < 8 => self.read(inner, depth + 1),
                    Some(_) | None => self.message = sanitize(&value.to_string()),
                }
                self.add_token_counts(members.get("n_prompt_tokens"), members.get("n_ctx"));
                self.add_param(members.get("param").or_else(|| members.get("loc")));
                self.add_code(members.get("code"));
                if let Some(Value::Object(metadata)) = members.get("metadata") {
                    self.add_cause(metadata, depth);
                }
            }
            Value::String(text) => self.message = sanitize(text),
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                self.message = sanitize(&value.to_string());
            }
        }
        for other in others.iter().take(MAX_OTHERS).filter(|_| depth < 8) {
            let mut report = Self::default();
            report.read(other, depth + 1);
            self.message = sanitize(&format!("{}; {}", self.message, report.message));
        }
    }

    fn read_label(&mut self, value: Option<&Value>) {
        match value {
            Some(Value::Number(number)) => {
                self.code = number.as_u64().and_then(|code| u16::try_from(code).ok()).or(self.code);
                self.labels.push(number.to_string());
            }
            Some(Value::String(label)) => {
                self.code = label.parse().ok().or(self.code);
                self.labels.push(label.clone());
            }
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {}
        }
    }

    fn read_quotas(&mut self, details: Option<&Value>) {
        let details = details.and_then(Value::as_array).into_iter().flatten();
        let violations = details.filter_map(|detail| detail.get("violations")?.as_array()).flatten();
        for violation in violations.take(MAX_OTHERS) {
            self.read_label(violation.get("quotaId"));
        }
    }

    /// Adds the name of the invalid member, unless the message contains it. `OpenAI` sends `param`, `FastAPI` sends
    /// `loc`, a path below the body.
    fn add_param(&mut self, param: Option<&Value>) {
        let name = match param {
            Some(Value::String(name)) => name.clone(),
            Some(Value::Array(path)) => {
                let parts = path.iter().filter_map(Value::as_str).filter(|part| *part != "body");
                parts.collect::<Vec<_>>().join(".")
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => return,
        };
        if !name.is_empty() && !self.message.contains(&name) {
            self.message = sanitize(&format!("{} ({name})", self.message));
        }
    }

    /// Adds a code that says more than the message.
    fn add_code(&mut self, code: Option<&Value>) {
        if let Some(code) = code.and_then(Value::as_str)
            && EXPLAINING_CODES.contains(&code)
            && !self.message.contains(code)
        {
            self.message = sanitize(&format!("{} ({code})", self.message));
        }
    }

    /// Adds the provider that failed and its message, or the moderation reasons, from `OpenRouter`'s `metadata`.
    fn add_cause(&mut self, metadata: &Map<String, Value>, depth: usize) {
        let text = |name: &str| metadata.get(name).and_then(Value::as_str);
        let raw = match metadata.get("raw") {
            Some(Value::String(raw)) => {
                serde_json::from_str(raw).unwrap_or_else(|_| Value::String(raw.clone()))
            }
            Some(raw) => raw.clone(),
            None => Value::Null,
        };
        let mut cause = Self::default();
        if depth < 8 {
            cause.read(&raw, depth + 1);
        }
        self.labels.append(&mut cause.labels);
        let reasons = metadata.get("reasons").and_then(Value::as_array).into_iter().flatten();
        let reasons: Vec<&str> = reasons.filter_map(Value::as_str).collect();
        self.is_flagged |= !reasons.is_empty();
        let parts = [text("provider_name").unwrap_or_default(), &cause.message, &reasons.join(", ")];
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            self.message = sanitize(&format!("{}: {part}", self.message));
        }
    }

    /// Adds the sizes of prompt and context, unless the message contains them.
    fn add_token_counts(&mut self, prompt: Option<&Value>, context: Option<&Value>) {
        if let (Some(prompt), Some(context)) =
            (prompt.and_then(Value::as_u64), context.and_then(Value::as_u64))
            && !self.message.contains(&context.to_string())
        {
            self.message = sanitize(&format!("{} ({prompt} tokens, context of {context})", self.message));
        }
    }
}

/// Returns the most specific member: an `error` with members, otherwise the message, otherwise the `error`, otherwise
/// `base_resp` (MiniMax). Some servers send a message next to the name of the status (`"error": "Bad Request"`).
fn inner_error(members: &Map<String, Value>) -> Option<&Value> {
    let is_set = |value: &&Value| match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(_) => true,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    };
    let get = |name: &str| members.get(name).filter(is_set);
    get("error")
        .filter(|error| error.is_object() || error.is_array())
        // The last two are MiniMax's.
        .or_else(|| {
            ["message", "detail", "msg", "error", "status_msg", "base_resp"].into_iter().find_map(get)
        })
}

/// Maximum number of errors of a list that are added to the first one.
const MAX_OTHERS: usize = 7;

/// Codes that a message may not contain: state of another key or model, a call id that is too long.
const EXPLAINING_CODES: [&str; 2] = ["invalid_encrypted_content", "string_above_max_length"];

/// Returns the text of a page, without tags, scripts and styles.
fn without_tags(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let is_code = ["script", "style"]
            .iter()
            .find(|tag| after.get(..tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag)));
        let end = is_code.map_or(">", |tag| if *tag == "script" { "</script>" } else { "</style>" });
        let Some((_, tail)) = after.split_once(end) else { return text };
        rest = tail;
    }
    text.push_str(rest);
    text
}

/// Sanitises a message: replaces hidden characters (a server must not control the terminal), trims and collapses
/// blanks, keeps line ends, truncates to 2 KiB.
fn sanitize(text: &str) -> String {
    let mut sanitized = String::new();
    for char in text.trim().chars() {
        let char = match char {
            '\n' => '\n',
            _ if char.is_whitespace() => ' ',
            _ if is_readable(char) => char,
            _ => '\u{fffd}',
        };
        if char == ' ' && sanitized.ends_with([' ', '\n']) {
            continue;
        }
        if sanitized.len() + char.len_utf8() > MAX_MESSAGE_BYTES {
            break;
        }
        sanitized.push(char);
    }
    sanitized
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_in_every_form_are_classified() {
        use ServerErrorKind::{ContextOverflow, Http, Temporary, Unauthorized};
        let cases: &[(u16, &str, ServerErrorKind, &str)] = &[
            (500, r#"{"error":{"code":500,"message":"boom","type":"server_error"}}"#, Temporary, "boom"),
            (500, r#"{"error":"boom"}"#, Temporary, "boom"),
            // The name of the status next to the message, or empty members.
            (
                400,
                r#"{"statusCode":400,"error":"Bad Request","message":"model m has no deployment"}"#,
                Http,
                "model m has no deployment",
            ),
            (400, r#"{"error":"","message":"bad seed"}"#, Http, "bad seed"),
            (400, r#"{"error":{},"detail":"bad seed"}"#, Http, "bad seed"),
            (400, r#"{"error":{"message":"bad seed"},"message":"Bad Request"}"#, Http, "bad seed"),
            (400, r#"{"error":"bad seed","message":" "}"#, Http, "bad seed"),
            (400, r#"{"error":{}}"#, Http, r#"{"error":{}}"#),
            (404, r#"{"detail":"Not Found"}"#, Http, "Not Found"),
            (
                422,
                r#"{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}"#,
                Http,
                "field required",
            ),
            (400, r#"{"object":"error","message":"bad","type":"BadRequestError","code":400}"#, Http, "bad"),
            (
                502,
                "<html><head><title>502 Bad\u{7} Gateway</title></head></html>",
                Temporary,
                "502 Bad\u{fffd} Gateway",
            ),
            (502, "<html><style>p{}</style><body><p>Oh <b>no</b></p></body></html>", Temporary, "Oh no"),
            (500, "Internal Server Error\n", Temporary, "Internal Server Error"),
            (500, "\u{1b}[31mred", Temporary, "\u{fffd}[31mred"),
            (504, "", Temporary, "HTTP status 504"),
            (400, "null", Http, "HTTP status 400"),
            (401, r#"{"error":{"message":"Invalid API Key"}}"#, Unauthorized, "Invalid API Key"),
            (403, "no", Unauthorized, "no"),
            (
                403,
                r#"{"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["violence"]}}}"#,
                Http,
                "Your input was flagged: violence",
            ),
            (500, " a \t\t b\n\n  c ", Temporary, "a b\n\nc"),
            (
                400,
                r#"{"error":{"message":"too big","type":"exceed_context_size_error","n_prompt_tokens":6021,"n_ctx":1024}}"#,
                ContextOverflow,
                "too big (6021 tokens, context of 1024)",
            ),
        ];
        for (status, body, kind, message) in cases {
            let error = classify_http_error(Tables::default(), *status, body.as_bytes());
            assert_eq!(
                (error.kind, error.message.as_str(), error.code),
                (*kind, *message, Some(*status)),
                "{body}"
            );
        }
    }

    #[test]
    fn messages_name_the_member_and_the_provider() {
        let cases = [
            (
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted"}]}"#,
                "Extra inputs are not permitted (max_completion_tokens)",
            ),
            (
                r#"{"detail":[{"loc":["body","messages"],"msg":"too short"},{"loc":["body","seed"],"msg":"not an integer"}]}"#,
                "too short (messages); not an integer (seed)",
            ),
            (
                r#"{"error":{"message":"Invalid request.","code":"invalid_encrypted_content"}}"#,
                "Invalid request. (invalid_encrypted_content)",
            ),
            (
                r#"{"error":{"message":"Unsupported parameter.","param":"max_tokens"}}"#,
                "Unsupported parameter. (max_tokens)",
            ),
            (r#"{"error":{"message":"'max_tokens' is out","param":"max_tokens"}}"#, "'max_tokens' is out"),
            (
                r#"{"error":{"code":400,"message":"Provider returned error","metadata":{"provider_name":"Some","raw":"{\"error\":{\"message\":\"no such model\"}}"}}}"#,
                "Provider returned error: Some: no such model",
            ),
            (
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"upstream is down"}}}"#,
                "Provider returned error: upstream is down",
            ),
            (
                r#"{"error":{"message":"flagged","metadata":{"reasons":["violence"],"flagged_input":"x"}}}"#,
                "flagged: violence",
            ),
        ];
        for (body, message) in cases {
            assert_eq!(
                classify_http_error(Tables::default(), 400, body.as_bytes()).message,
                message,
                "{body}"
            );
        }
    }

    #[test]
    fn failed_generation_of_groq_is_kept() {
        let body = r#"{"error":{"message":"Failed to call a function.","type":"invalid_request_error",
            "code":"tool_use_failed","failed_generation":"<function=f>{}</function>"}}"#;
        let error = classify_http_error(Tables::default(), 400, body.as_bytes());
        assert_eq!(error.failed_generation.as_deref(), Some("<function=f>{}</function>"));
    }

    #[test]
    fn compressed_bytes_are_described_and_not_shown() {
        for body in [&b"\x1f\x8b"[..], b"\x1f\x8b\x08\x00\x00\x00\x00\x00\xff\xff\xfe"] {
            let message = classify_http_error(Tables::default(), 502, body).message;
            assert_eq!(message, "gzip-compressed data, which was not requested");
        }
    }

    #[test]
    fn messages_are_truncated_at_a_character_boundary() {
        let error = classify_http_error(Tables::default(), 500, "é".repeat(3000).as_bytes());
        assert_eq!(error.message.len(), MAX_MESSAGE_BYTES);
    }

    #[test]
    fn stream_errors_contain_their_code() {
        use ServerErrorKind::{Temporary, Unauthorized, Unavailable};
        for (data, kind, code) in [
            (r#"{"code":"429","message":"wait"}"#, Unavailable, Some(429)),
            (r#"{"error":{"type":"unavailable_error","message":"x"}}"#, Unavailable, None),
            // Anthropic's 504.
            (r#"{"type":"error","error":{"type":"timeout_error","message":"x"}}"#, Unavailable, None),
            // A label beside a code.
            (r#"{"error":{"type":"overloaded_error","code":500,"message":"x"}}"#, Unavailable, Some(500)),
            (r#"{"error":{"type":"authentication_error","code":1,"message":"x"}}"#, Unauthorized, Some(1)),
            (r#"{"error":{"code":502,"message":"x"}}"#, Temporary, Some(502)),
            ("", ServerErrorKind::Server, None),
        ] {
            let error = classify_stream_error(Tables::default(), data.as_bytes());
            assert_eq!((error.kind, error.code), (kind, code), "{data}");
        }
    }

    #[test]
    fn the_status_of_minimax_is_an_error() {
        let error = classify_stream_error(Tables::default(),
            br#"{"id":"1","choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#,
        );
        assert_eq!((error.message.as_str(), error.code), ("insufficient balance", Some(1008)));
    }
}
