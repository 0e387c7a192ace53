//! A client that validates what it sends and receives against the published schema.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::support::jsonrpc::Connection;
use crate::support::project::Project;

/// A client that validates notifications, `approve` requests, and the parameters and results of [`Client::request`].
pub(in crate::commands) struct Client {
    pub(in crate::commands) connection: Connection,
    schema: Value,
    next_id: i64,
    /// Received messages that no test has read.
    pub(in crate::commands) received: Vec<Value>,
}

impl Client {
    pub(in crate::commands) fn start(project: &Project, arguments: &[&str]) -> Self {
        Self::of(project.command(&[&["rpc"], arguments].concat()))
    }

    /// Starts the command, which is `deftool rpc`.
    pub(in crate::commands) fn of(mut command: Command) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas/rpc.json");
        let schema = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        command.stderr(Stdio::null());
        Self { connection: Connection::spawn(command), schema, next_id: 0, received: Vec::new() }
    }

    /// Validates a value against a definition of the schema.
    pub(in crate::commands) fn validate(&self, pointer: &str, value: &Value) {
        let mut schema = self.schema.clone();
        let part =
            schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in the schema")).clone();
        let part = part.as_object().unwrap().clone();
        for key in ["type", "properties", "required", "description", "title"] {
            schema.as_object_mut().unwrap().remove(key);
        }
        schema.as_object_mut().unwrap().extend(part);
        let validator: Validator = jsonschema::validator_for(&schema).unwrap();
        if let Err(error) = validator.validate(value) {
            panic!("{pointer}: {error}: {value}");
        }
    }

    /// Validates the parameters or the result of a method.
    pub(in crate::commands) fn validate_part(&self, group: &str, method: &str, part: &str, value: &Value) {
        let at = format!("/$defs/{group}/properties/{method}/$ref");
        let definition = self.schema.pointer(&at).and_then(Value::as_str).unwrap();
        let definition = definition.strip_prefix('#').unwrap();
        self.validate(&format!("{definition}/properties/{part}"), value);
    }

    /// Sends a request and returns its ID.
    pub(in crate::commands) fn send(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let (id, message) =
            (self.next_id, json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}));
        self.connection.send(&message);
        id
    }

    pub(in crate::commands) fn receive(&mut self) -> Value {
        let message = self.connection.receive().expect("the server has ended");
        let (method, params) = (message["method"].as_str(), &message["params"]);
        match (method, message.get("id")) {
            (Some("$/cancelRequest"), None) => self.validate("/$defs/CancelParams", params),
            (Some(method), None) => {
                let at = format!("/$defs/ServerNotifications/properties/{method}");
                self.validate(&at, params);
            }
            (Some(method), Some(_)) => self.validate_part("ServerRequests", method, "params", params),
            (None, _) => {}
        }
        message
    }

    /// Waits for the first message that `is_expected`, and keeps the others.
    pub(in crate::commands) fn wait_for(&mut self, is_expected: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.received.iter().position(&is_expected) {
            return self.received.remove(at);
        }
        loop {
            let message = self.receive();
            if is_expected(&message) {
                return message;
            }
            self.received.push(message);
        }
    }

    pub(in crate::commands) fn notification(&mut self, method: &str) -> Value {
        self.wait_for(|message| message["method"] == method)["params"].clone()
    }

    pub(in crate::commands) fn response(&mut self, id: i64) -> Value {
        self.wait_for(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Sends a request, whose parameters must be valid, and waits for its result.
    pub(in crate::commands) fn request(&mut self, method: &str, params: Value) -> Value {
        self.validate_part("Requests", method, "params", &params);
        let id = self.send(method, params);
        let response = self.response(id);
        assert!(response.get("error").is_none(), "{method}: {response}");
        self.validate_part("Requests", method, "result", &response["result"]);
        response["result"].clone()
    }

    /// Sends a request and returns its error: `CODE MESSAGE`.
    pub(in crate::commands) fn error(&mut self, method: &str, params: Value) -> String {
        let id = self.send(method, params);
        error_of(&self.response(id))
    }

    /// Answers the next `approve` request and returns its parameters.
    pub(in crate::commands) fn answer(&mut self, answer: Value) -> Value {
        let asked = self.wait_for(|message| message["method"] == "approve");
        self.connection.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
        asked["params"].clone()
    }

    pub(in crate::commands) fn shut_down(mut self) {
        self.request("shutdown", json!({}));
        assert!(self.connection.disconnect().success());
    }
}

pub(in crate::commands) fn error_of(response: &Value) -> String {
    let error = &response["error"];
    format!("{} {}", error["code"], error["message"].as_str().unwrap_or_else(|| panic!("{response}")))
}
