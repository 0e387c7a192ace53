//! Framing.

use std::io::{self, BufRead, ErrorKind, Read, Write};

use serde::Serialize;

use crate::message::{Error, Message, code};

/// Maximum size of a received message in bytes, on every transport of every protocol. An image of 20 MB is 27 MB in a message.
pub const MAX_MESSAGE: usize = 32 << 20;

/// Maximum length of a header line in bytes.
const MAX_HEADER: u64 = 4 << 10;

/// The separation of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// A `Content-Length` header before each message.
    Headers,
    /// One message a line.
    Lines,
}

/// The next part of the input.
#[derive(Debug, PartialEq)]
pub enum Received {
    /// A message.
    Message(Message),
    /// Input that is not a message, with the response to send.
    Invalid(Message),
}

/// A reader of messages.
pub struct Reader<R> {
    input: R,
    framing: Option<Framing>,
}

impl<R: BufRead> Reader<R> {
    /// Creates a reader. The first byte of the input determines the framing.
    pub fn new(input: R) -> Self {
        Self { input, framing: None }
    }

    /// Returns the framing, once anything was received.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// Waits for the next message. Returns `None` at the end of the input.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn receive(&mut self) -> io::Result<Option<Received>> {
        let framing = match self.framing {
            Some(framing) => framing,
            None => {
                let framing = match self.first_byte()? {
                    None => return Ok(None),
                    Some(b'{' | b'[') => Framing::Lines,
                    Some(_) => Framing::Headers,
                };
                *self.framing.insert(framing)
            }
        };
        match framing {
            Framing::Headers => self.receive_framed(),
            Framing::Lines => self.receive_line(),
        }
    }

    /// Returns the first byte that is not blank, without consuming it.
    fn first_byte(&mut self) -> io::Result<Option<u8>> {
        loop {
            let Some(&byte) = fill(&mut self.input)?.first() else { return Ok(None) };
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
            self.input.consume(1);
        }
    }

    fn receive_line(&mut self) -> io::Result<Option<Received>> {
        loop {
            let mut line = Vec::new();
            (&mut self.input).take(MAX_MESSAGE as u64).read_until(b'\n', &mut line)?;
            if line.len() == MAX_MESSAGE && !line.ends_with(b"\n") {
                self.skip_line()?;
                return Ok(Some(too_large()));
            }
            if line.is_empty() {
                return Ok(None);
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(parsed(&line)));
            }
        }
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let part = fill(&mut self.input)?;
            let (length, is_end) = match part.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (part.len(), part.is_empty()),
            };
            self.input.consume(length);
            if is_end {
                return Ok(());
            }
        }
    }

    fn receive_framed(&mut self) -> io::Result<Option<Received>> {
        let mut length: Option<u64> = None;
        let mut garbage: Option<Vec<u8>> = None;
        loop {
            let mut line = Vec::new();
            (&mut self.input).take(MAX_HEADER).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(None);
            }
            let header = line.trim_ascii();
            if let (true, Some(length)) = (header.is_empty(), length) {
                return self.receive_body(length);
            }
            // A line that is not a header is not followed by a message: continue at the next header.
            if header.is_empty() {
                if let Some(garbage) = garbage {
                    let shown = String::from_utf8_lossy(&garbage);
                    let message =
                        format!("expected a `Content-Length` header, found `{}`", shown.escape_debug());
                    return Ok(Some(invalid(code::PARSE_ERROR, message)));
                }
                continue;
            }
            match content_length(header) {
                Some(value) => length = Some(value),
                None if header.starts_with(b"Content-Type") => {}
                None => drop(garbage.get_or_insert_with(|| header.iter().copied().take(80).collect())),
            }
        }
    }

    fn receive_body(&mut self, length: u64) -> io::Result<Option<Received>> {
        let mut body = (&mut self.input).take(length);
        if length > MAX_MESSAGE as u64 {
            io::copy(&mut body, &mut io::sink())?;
            return Ok(Some(too_large()));
        }
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes)?;
        // The input ended inside the message.
        if (bytes.len() as u64) < length {
            return Ok(None);
        }
        Ok(Some(parsed(&bytes)))
    }
}

/// Reads more input. Retries if a signal interrupts the call.
fn fill(input: &mut impl BufRead) -> io::Result<&[u8]> {
    loop {
        match input.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            // Borrowed again: a borrow that is returned cannot be part of a loop.
            Ok(_) => return input.fill_buf(),
        }
    }
}

fn content_length(header: &[u8]) -> Option<u64> {
    let header = std::str::from_utf8(header).ok()?;
    let (name, value) = header.split_once(':')?;
    name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok()).flatten()
}

fn parsed(bytes: &[u8]) -> Received {
    match Message::parse(bytes) {
        Ok(message) => Received::Message(message),
        Err((id, error)) => Received::Invalid(Message::Response { id, result: Err(error) }),
    }
}

fn invalid(code: i64, message: String) -> Received {
    Received::Invalid(Message::Response { id: None, result: Err(Error::new(code, message)) })
}

fn too_large() -> Received {
    invalid(code::INVALID_REQUEST, format!("message ignored: larger than {} MiB", MAX_MESSAGE >> 20))
}

/// Appends a message to a buffer, so that several messages can be written together.
///
/// # Errors
/// If the message cannot be serialised. The buffer is then unchanged.
pub fn append(buffer: &mut Vec<u8>, framing: Framing, message: &impl Serialize) -> serde_json::Result<()> {
    let start = buffer.len();
    if let Err(error) = serde_json::to_writer(&mut *buffer, message) {
        buffer.truncate(start);
        return Err(error);
    }
    match framing {
        Framing::Lines => buffer.push(b'\n'),
        Framing::Headers => {
            let header = format!("Content-Length: {}\r\n\r\n", buffer.len() - start);
            buffer.splice(start..start, header.into_bytes());
        }
    }
    Ok(())
}

/// Writes a message and flushes `output`.
///
/// # Errors
/// If it cannot be written.
pub fn write(output: &mut impl Write, framing: Framing, message: &Message) -> io::Result<()> {
    let mut bytes = Vec::new();
    append(&mut bytes, framing, message)?;
    output.write_all(&bytes)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::message::{Id, Notification};

    /// Returns a line for each part of the input.
    fn received(input: &[u8]) -> Vec<String> {
        let mut reader = Reader::new(input);
        let mut found = Vec::new();
        while let Some(part) = reader.receive().unwrap() {
            found.push(match part {
                Received::Message(message) => serde_json::to_string(&message).unwrap(),
                Received::Invalid(Message::Response { result: Err(error), .. }) => error.message,
                Received::Invalid(other) => panic!("{other:?}"),
            });
        }
        found
    }

    fn framed(text: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{text}", text.len())
    }

    #[test]
    fn detects_the_framing() {
        let message = r#"{"jsonrpc":"2.0","method":"a","params":null}"#;
        for input in [
            format!("{message}\n\n{message}"),
            framed(message) + &framed(message),
            format!("content-length:{}\nContent-Type: x\n\n{message}", message.len()) + &framed(message),
        ] {
            assert_eq!(received(input.as_bytes()), [message; 2], "{input}");
        }
    }

    #[test]
    fn continues_after_input_that_is_not_a_message() {
        let message = r#"{"jsonrpc":"2.0","method":"a","params":null}"#;
        for (bad, error) in [
            (
                String::from("GET / HTTP/1.1\r\n\r\n"),
                "expected a `Content-Length` header, found `GET / HTTP/1.1`",
            ),
            (
                String::from("Content-Length: -1\r\n\r\n"),
                "expected a `Content-Length` header, found `Content-Length: -1`",
            ),
            (framed("{"), "not JSON: EOF while parsing an object at line 1 column 1"),
            (framed("[]"), "expected an object; batches are not supported"),
            (framed(r#"{"id":1.5,"method":"a"}"#), "expected an integer or a string as `id`"),
            (framed(r#"{"id":1}"#), "expected a string as `method`"),
        ] {
            assert_eq!(received((bad + &framed(message)).as_bytes()), [error, message]);
        }
    }

    #[test]
    fn skips_messages_that_are_too_large() {
        let message = r#"{"jsonrpc":"2.0","method":"a","params":null}"#;
        let large = " ".repeat(MAX_MESSAGE + 1);
        let error = "message ignored: larger than 32 MiB";
        assert_eq!(received((framed(&large) + &framed(message)).as_bytes()), [error, message]);
        assert_eq!(received(format!("{{{large}\n{message}").as_bytes()), [error, message]);
        // A length without the bytes does not allocate them.
        assert_eq!(received(b"Content-Length: 18446744073709551615\r\n\r\n{}"), [error]);
    }

    #[test]
    fn keeps_ids() {
        for id in ["1", "-9007199254740993", "\"a\""] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"a"}}"#);
            let Ok(Message::Request { id: found, .. }) = Message::parse(text.as_bytes()) else { panic!() };
            assert_eq!(serde_json::to_string(&found).unwrap(), id);
        }
        assert_ne!(Id::Text(String::from("1")), Id::Number(1));
    }

    #[test]
    fn appends_messages_that_are_read_back() {
        let (id, error) = (Some(Id::Number(1)), Error::new(code::CANCELED, "canceled"));
        let method = || String::from("a");
        let messages = [
            Message::Request { id: Id::Text(String::from("x")), method: method(), params: json!([1]) },
            Message::Notification { method: method(), params: Value::Null },
            Message::Response { id: id.clone(), result: Ok(json!({"b": 2})) },
            Message::Response { id, result: Err(error) },
        ];
        let texts = [
            r#"{"jsonrpc":"2.0","id":"x","method":"a","params":[1]}"#,
            r#"{"jsonrpc":"2.0","method":"a","params":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"b":2}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"canceled"}}"#,
        ];
        for framing in [Framing::Headers, Framing::Lines] {
            let mut buffer = Vec::new();
            for message in &messages {
                append(&mut buffer, framing, message).unwrap();
            }
            append(&mut buffer, framing, &Notification { method: "a", params: () }).unwrap();
            assert_eq!(received(&buffer), [&texts[..], &texts[1..2]].concat());
            // A value that is not JSON leaves the buffer as it was.
            let before = buffer.clone();
            let params = HashMap::from([((1, 2), 3)]);
            append(&mut buffer, framing, &Notification { method: "a", params }).unwrap_err();
            assert_eq!(buffer, before);
        }
    }

    proptest! {
        #[test]
        fn reads_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut reader = Reader::new(&bytes[..]);
            while reader.receive().unwrap().is_some() {}
        }
    }
}
