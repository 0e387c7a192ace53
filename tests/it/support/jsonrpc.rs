//! A connection to a server that speaks JSON-RPC on stdin and stdout, with `Content-Length` headers.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::Value;

/// A server and the connection to it.
pub(crate) struct Connection {
    pub(crate) server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Connection {
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (server.stdin.take(), BufReader::new(server.stdout.take().unwrap()));
        Self { server, input, output }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).and_then(|()| input.flush()).unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.write(&framed(message));
    }

    /// Receives one message. Returns `None` at the end of the output.
    pub(crate) fn receive(&mut self) -> Option<Value> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            match line.trim_end().strip_prefix("Content-Length: ") {
                Some(value) => length = value.parse().unwrap(),
                None if line.trim_end().is_empty() => break,
                None => panic!("{line}"),
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        Some(serde_json::from_slice(&body).unwrap())
    }

    /// Takes the input of the server, to write to it in another thread.
    pub(crate) fn writer(&mut self) -> ChildStdin {
        self.input.take().unwrap()
    }

    /// Closes the input of the server and returns its exit status.
    pub(crate) fn disconnect(mut self) -> ExitStatus {
        drop(self.input.take());
        self.server.wait().unwrap()
    }
}

pub(crate) fn framed(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    format!("Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
}
