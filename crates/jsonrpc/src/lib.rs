//! JSON-RPC 2.0 messages over a byte stream, with the framing of the Language Server Protocol or one message a line.
//!
//! [`Reader`] detects the framing. Its input may be hostile: a message has a maximum size, and everything that is not a
//! message becomes an error response instead of ending the stream.
//!
//! ```
//! use deftool_jsonrpc::{Message, Reader, Received};
//!
//! let mut reader = Reader::new(&b"Content-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list\"}\n"[..]);
//! let Some(Received::Message(Message::Request { method, .. })) = reader.receive()? else { panic!() };
//! assert_eq!(method, "list");
//! # Ok::<(), std::io::Error>(())
//! ```

mod message;
mod reader;

pub use message::{Error, Id, Message, Notification, code};
pub use reader::{Framing, MAX_MESSAGE, Reader, Received, append, write};
