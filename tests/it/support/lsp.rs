//! A client of the language server.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus};

use serde_json::{Value, json};

use super::jsonrpc::Connection;

/// A client with its server.
pub(crate) struct Client {
    pub(crate) connection: Connection,
    next_id: i64,
    /// The latest findings of each file, by URI.
    pub(crate) findings: BTreeMap<String, Value>,
    /// Messages for the user.
    pub(crate) messages: Vec<String>,
}

impl Client {
    /// Starts a server without a handshake.
    pub(crate) fn spawn(command: Command) -> Self {
        let connection = Connection::spawn(command);
        Self { connection, next_id: 0, findings: BTreeMap::new(), messages: Vec::new() }
    }

    /// Starts a server and opens `folder`.
    pub(crate) fn open(command: Command, folder: &Path, capabilities: Value) -> Self {
        let mut client = Self::spawn(command);
        let folders = json!([{"uri": uri(folder), "name": "project"}]);
        let params = json!({"processId": null, "rootUri": null, "workspaceFolders": folders, "capabilities": capabilities});
        client.request("initialize", params);
        client.notify("initialized", json!({}));
        client
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.connection.write(bytes);
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.connection.send(message);
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and waits for its result. Panics on an error.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let response = self.try_request(method, params);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// Sends a request and waits for its response.
    pub(crate) fn try_request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive().unwrap();
            if message["id"] == json!(id) {
                return message;
            }
        }
    }

    /// Receives one message. Returns `None` at the end of the output.
    pub(crate) fn receive(&mut self) -> Option<Value> {
        let message = self.connection.receive()?;
        match message["method"].as_str() {
            Some("textDocument/publishDiagnostics") => {
                let params = &message["params"];
                let uri = params["uri"].as_str().unwrap().to_owned();
                self.findings.insert(uri, params["diagnostics"].clone());
            }
            Some("window/showMessage") => {
                self.messages.push(message["params"]["message"].as_str().unwrap().to_owned());
            }
            _ => {}
        }
        Some(message)
    }

    /// Receives messages until the findings of a file are as expected.
    pub(crate) fn wait_for(&mut self, path: &Path, is_expected: impl Fn(&[String]) -> bool) -> Vec<String> {
        loop {
            let codes = self.codes(path);
            if self.findings.contains_key(&uri(path)) && is_expected(&codes) {
                return codes;
            }
            self.receive().unwrap();
        }
    }

    /// Returns the latest findings of a file: the codes with their lines from 1.
    pub(crate) fn codes(&self, path: &Path) -> Vec<String> {
        let findings = self.findings.get(&uri(path)).and_then(Value::as_array).into_iter().flatten();
        let shown = |finding: &Value| {
            let line = finding["range"]["start"]["line"].as_u64().unwrap() + 1;
            format!("{line}:{}", finding["code"].as_str().unwrap())
        };
        findings.map(shown).collect()
    }

    pub(crate) fn did_open(&mut self, path: &Path, text: &str) {
        let document = json!({"uri": uri(path), "languageId": "eld", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Replaces the text between two positions, given as line and column.
    pub(crate) fn did_change(&mut self, path: &Path, version: i32, range: [u64; 4], text: &str) {
        let [line, column, end_line, end_column] = range;
        let range = json!({"start": {"line": line, "character": column}, "end": {"line": end_line, "character": end_column}});
        let params = json!({
            "textDocument": {"uri": uri(path), "version": version},
            "contentChanges": [{"range": range, "text": text}],
        });
        self.notify("textDocument/didChange", params);
    }

    /// Takes the input of the server, to write to it in another thread.
    pub(crate) fn writer(&mut self) -> ChildStdin {
        self.connection.writer()
    }

    /// Shuts the server down and returns its exit status.
    pub(crate) fn shut_down(mut self) -> ExitStatus {
        assert_eq!(self.request("shutdown", Value::Null), Value::Null);
        self.notify("exit", Value::Null);
        self.disconnect()
    }

    /// Closes the input of the server and returns its exit status.
    pub(crate) fn disconnect(self) -> ExitStatus {
        self.connection.disconnect()
    }
}

pub(crate) fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// Returns the parameters of a request at a position.
pub(crate) fn at(path: &Path, line: u64, character: u64) -> Value {
    json!({"textDocument": {"uri": uri(path)}, "position": {"line": line, "character": character}})
}
