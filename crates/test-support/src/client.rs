//! A client that reads the raw bytes that a stub sends.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// A connection to the stub.
pub struct Client(TcpStream);

impl Client {
    /// Connects. Reads time out after 20 s.
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(stream)
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    /// Reads until the server closes the connection. Returns the text and the error that ended it, if any.
    pub fn read_to_end(&mut self) -> (String, Option<std::io::ErrorKind>) {
        let mut bytes = Vec::new();
        let end = self.0.read_to_end(&mut bytes).err().map(|error| error.kind());
        (String::from_utf8_lossy(&bytes).into_owned(), end)
    }

    /// Reads until `part` was received.
    pub fn read_until(&mut self, part: &str) -> String {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let text = String::from_utf8_lossy(&bytes);
            if text.contains(part) {
                return text.into_owned();
            }
            let count = self.0.read(&mut buffer).unwrap();
            assert!(count > 0, "closed after {text:?}, before {part:?}");
            bytes.extend_from_slice(&buffer[..count]);
        }
    }
}

/// Returns a chat completions request. The server closes the connection after it.
pub fn post(body: &Value) -> String {
    post_to("/v1/chat/completions", body)
}

/// Returns a POST request to `path`. The server closes the connection after it.
pub fn post_to(path: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Returns the body of a chat completions request with one message.
pub fn hello(is_stream: bool) -> Value {
    json!({"model": "m", "stream": is_stream, "messages": [{"role": "user", "content": "hello"}]})
}

/// Sends a chat completions request. Returns the status and the JSON body of the answer.
pub fn ask(address: SocketAddr, body: &Value) -> (u16, Value) {
    exchange(address, &post(body))
}

/// Sends a GET request. Returns the same as [`ask`].
pub fn get(address: SocketAddr, path: &str) -> (u16, Value) {
    exchange(address, &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
}

/// Sends a request. Returns the status and the body of the answer: JSON, or a string if it is not JSON.
pub fn exchange(address: SocketAddr, request: &str) -> (u16, Value) {
    let mut client = Client::connect(address);
    client.send(request);
    let (text, _) = client.read_to_end();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    let (_, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {text:?}"));
    let body = unchunked(body);
    (status.unwrap(), serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

/// Decodes a chunked body.
fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        whole.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    whole
}
