//! The meaning of a message of a server, for all transports.

use std::error::Error;

use deftool_lang::tool::ToolErrorKind;
use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::RxJsonRpcMessage;
use serde_json::{Map, Value, json};

pub(super) type Received = RxJsonRpcMessage<RoleClient>;

/// Receives a problem of a server, as a clause.
pub(super) type Warn = std::sync::Arc<dyn Fn(String) + Send + Sync>;

/// The code of an answer that the client could not use. Codes of servers differ.
const UNUSABLE: ErrorCode = ErrorCode(i32::MIN);

/// Something other than a JSON-RPC message.
#[derive(Debug)]
pub(super) struct NotJsonRpc;

/// Reads a message. An answer is repaired if it is certain which of the `open` requests it ends: it has the id of one, or it
/// has no id and there is only one. With `is_reply`, the message answers that one in any case, as the body of a HTTP response
/// does. Returns `None` for an unknown notification.
pub(super) fn read(text: &[u8], open: &[RequestId], is_reply: bool) -> Result<Option<Received>, NotJsonRpc> {
    // Some servers write strings in another encoding.
    let text = String::from_utf8_lossy(text);
    let mut value: Value =
        serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|_| NotJsonRpc)?;
    let message = value.as_object_mut().ok_or(NotJsonRpc)?;
    let is_rpc = message.get("jsonrpc").is_some_and(|version| version == "2.0");
    if message.contains_key("method") {
        return match serde_json::from_value(value) {
            Err(_) if !is_rpc => Err(NotJsonRpc),
            read => Ok(read.ok()),
        };
    }
    let id = message.get("id").filter(|id| !id.is_null());
    let is_of = |request: &&RequestId| id.is_some_and(|id| text_of(id) == request.to_string());
    let request = match open {
        [only] if is_rpc && (is_reply || id.is_none()) => Some(only),
        open => open.iter().find(is_of),
    };
    if let Some(request) = request {
        message.insert(String::from("jsonrpc"), json!("2.0"));
        message.insert(String::from("id"), request.clone().into_json_value());
        repair(message);
    }
    match (serde_json::from_value(value), request) {
        (Ok(message), _) => Ok(Some(message)),
        (Err(_), Some(request)) => Ok(Some(unusable(request, "the answer has no result and no error"))),
        (Err(_), None) => Err(NotJsonRpc),
    }
}

/// Leaves one of `result` and `error`, and makes the error one that the protocol describes.
fn repair(answer: &mut Map<String, Value>) {
    let Some(error) = answer.get("error") else { return };
    if error.is_null() {
        answer.remove("error");
        return;
    }
    if serde_json::from_value::<ErrorData>(error.clone()).is_err() {
        let message = error.get("message").unwrap_or(error);
        let (code, message) = match error.get("code").filter(|code| !code.is_null()).map(text_of) {
            None => (ErrorCode::INTERNAL_ERROR.0, text_of(message)),
            Some(code) => match code.parse() {
                Ok(code) => (code, text_of(message)),
                Err(_) => (ErrorCode::INTERNAL_ERROR.0, format!("{code}: {}", text_of(message))),
            },
        };
        answer.insert(String::from("error"), json!({"code": code, "message": message}));
    }
    answer.remove("result");
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the end of a request whose answer cannot be used.
pub(super) fn unusable(request: &RequestId, reason: impl Into<String>) -> Received {
    JsonRpcMessage::error(ErrorData::new(UNUSABLE, reason.into(), None), Some(request.clone()))
}

/// Returns the error of a call: one that the server answered is a result for the model, unless the server does not know the
/// method.
pub(super) fn failure_of(error: &ErrorData) -> (ToolErrorKind, String) {
    match error.code {
        UNUSABLE => (ToolErrorKind::Failure, error.message.to_string()),
        ErrorCode::METHOD_NOT_FOUND => (ToolErrorKind::Failure, with_code(error)),
        _ => (ToolErrorKind::ErrorResult, with_code(error)),
    }
}

fn with_code(error: &ErrorData) -> String {
    format!("{} ({})", error.message, error.code.0)
}

/// Returns the innermost cause of an error: the outer ones name types of the library.
pub(super) fn cause_of(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
