//! Messages.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

/// The ID of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(untagged)]
pub enum Id {
    /// A number.
    Number(i64),
    /// A string.
    Text(String),
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A call that has a response.
    Request {
        /// The ID that the response repeats.
        id: Id,
        /// The method.
        method: String,
        /// The parameters; null if there are none.
        params: Value,
    },
    /// A call without a response.
    Notification {
        /// The method.
        method: String,
        /// The parameters; null if there are none.
        params: Value,
    },
    /// The response to a request.
    Response {
        /// The ID of the request; `None` if the request had no valid ID.
        id: Option<Id>,
        /// The result.
        result: Result<Value, Error>,
    },
}

/// The error of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Error {
    /// A number of [`code`].
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// Details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<Value>>,
}

/// Error codes of JSON-RPC and of the Language Server Protocol.
pub mod code {
    /// Not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// Not a message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// Unknown method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Invalid parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// A request before `initialize`.
    pub const NOT_INITIALIZED: i64 = -32002;
    /// The client canceled the request.
    pub const CANCELED: i64 = -32800;
    /// A valid request that cannot be fulfilled.
    pub const REQUEST_FAILED: i64 = -32803;
}

impl Error {
    /// Creates an error without details.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

impl Message {
    /// Parses a message.
    ///
    /// # Errors
    /// If `bytes` are not a message. The error is that of the response to send, with the ID if there is a valid one.
    pub fn parse(bytes: &[u8]) -> Result<Self, (Option<Id>, Error)> {
        let reject = |id, code, message: String| (id, Error::new(code, message));
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|error| reject(None, code::PARSE_ERROR, format!("not JSON: {error}")))?;
        let Value::Object(mut members) = value else {
            let message = String::from("expected an object; batches are not supported");
            return Err(reject(None, code::INVALID_REQUEST, message));
        };
        let id = members.remove("id").filter(|id| !id.is_null());
        let id = match id.map(serde_json::from_value::<Id>) {
            None => None,
            Some(Ok(id)) => Some(id),
            Some(Err(_)) => {
                let message = String::from("expected an integer or a string as `id`");
                return Err(reject(None, code::INVALID_REQUEST, message));
            }
        };
        match members.remove("method") {
            Some(Value::String(method)) => {
                let params = members.remove("params").unwrap_or_default();
                Ok(match id {
                    Some(id) => Self::Request { id, method, params },
                    None => Self::Notification { method, params },
                })
            }
            None if members.contains_key("result") || members.contains_key("error") => {
                Ok(Self::Response { id, result: result_of(members) })
            }
            _ => Err(reject(id, code::INVALID_REQUEST, String::from("expected a string as `method`"))),
        }
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("jsonrpc", "2.0")?;
        match self {
            Self::Request { id, method, params } => {
                members.serialize_entry("id", id)?;
                members.serialize_entry("method", method)?;
                members.serialize_entry("params", params)?;
            }
            Self::Notification { method, params } => {
                members.serialize_entry("method", method)?;
                members.serialize_entry("params", params)?;
            }
            Self::Response { id, result } => {
                members.serialize_entry("id", id)?;
                match result {
                    Ok(result) => members.serialize_entry("result", result)?,
                    Err(error) => members.serialize_entry("error", error)?,
                }
            }
        }
        members.end()
    }
}

/// A notification to send. Its parameters are serialised without an intermediate [`Value`].
#[derive(Debug, Clone, Copy)]
pub struct Notification<'m, P> {
    /// The method.
    pub method: &'m str,
    /// The parameters.
    pub params: P,
}

impl<P: Serialize> Serialize for Notification<'_, P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(3))?;
        members.serialize_entry("jsonrpc", "2.0")?;
        members.serialize_entry("method", self.method)?;
        members.serialize_entry("params", &self.params)?;
        members.end()
    }
}

fn result_of(mut members: Map<String, Value>) -> Result<Value, Error> {
    match members.remove("error").filter(|error| !error.is_null()) {
        None => Ok(members.remove("result").unwrap_or_default()),
        Some(error) => Err(serde_json::from_value(error.clone())
            .unwrap_or_else(|_| Error { data: Some(Box::new(error)), ..Error::new(0, "invalid error") })),
    }
}
