//! Decodes bodies that a server or a proxy compressed although `Accept-Encoding: identity` was sent.
//!
//! Input: the body in pieces. Output: the decoded bytes, as soon as they can be decoded. gzip is detected by its first
//! two bytes, because the header can be wrong in either direction. No other body begins with these bytes. deflate is
//! detected by the header only. A body decodes to at most [`MAX_DECODED`] bytes. At most about one megabyte is decoded
//! beyond this limit.
//!
//! Source: RFC 1952, 2.3.1 (gzip); RFC 1950 (zlib), which is HTTP's `deflate`; RFC 1951, which some servers send under
//! that name (RFC 9110, 8.4.1.2).

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// Maximum size of a decoded body, in bytes.
const MAX_DECODED: usize = 256 << 20;
/// Number of compressed bytes to decode at a time. Each may expand to a thousand bytes.
const STEP: usize = 1 << 10;
/// The first bytes of every gzip member.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A decoder for one body.
pub(super) struct Inflater {
    state: State,
    /// Whether the header names deflate.
    declares_deflate: bool,
    decoded: usize,
}

/// The decoders are boxed, because they are rare and large.
enum State {
    /// The encoding is not known yet. Holds the bytes received so far.
    Unknown(Vec<u8>),
    /// The first encoding in the header that is not supported.
    Unsupported(String),
    Plain,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
    Deflate(Box<DeflateDecoder<Vec<u8>>>),
}

impl Inflater {
    /// Creates a decoder for a body with the `Content-Encoding` header `encoding`, which may be empty.
    pub(super) fn new(encoding: &str) -> Self {
        let names = || encoding.split(',').map(|name| name.trim().to_ascii_lowercase());
        let is_known = |name: &String| matches!(&**name, "" | "identity" | "gzip" | "x-gzip" | "deflate");
        Self {
            state: names()
                .find(|name| !is_known(name))
                .map_or(State::Unknown(Vec::new()), State::Unsupported),
            declares_deflate: names().any(|name| name == "deflate"),
            decoded: 0,
        }
    }

    /// Decodes the next `bytes` of the body and returns all output that is complete.
    ///
    /// # Errors
    /// When the bytes are invalid, their encoding is not supported, or the decoded body is too long. The error is a
    /// clause.
    pub(super) fn feed(&mut self, bytes: Bytes) -> Result<Bytes, String> {
        let bytes = match &mut self.state {
            State::Plain => return Ok(bytes),
            State::Unsupported(encoding) => {
                let encoding = deftool_lang::text::one_line(encoding.chars().take(40).collect());
                return Err(format!(
                    "the body is encoded with `{encoding}`, although the request allows only `identity`; \
                     turn compression off in the server or in the proxy before it"
                ));
            }
            State::Unknown(received) => {
                received.extend(bytes);
                let Some(state) = recognize(received, self.declares_deflate) else { return Ok(Bytes::new()) };
                let received = std::mem::take(received);
                self.state = state;
                if matches!(self.state, State::Plain) {
                    return Ok(received.into());
                }
                received.into()
            }
            State::Gzip(_) | State::Zlib(_) | State::Deflate(_) => bytes,
        };
        let mut out = Vec::new();
        for step in bytes.chunks(STEP) {
            let decoded = match &mut self.state {
                State::Gzip(decoder) => take(&mut **decoder, step, MultiGzDecoder::get_mut),
                State::Zlib(decoder) => take(&mut **decoder, step, ZlibDecoder::get_mut),
                State::Deflate(decoder) => take(&mut **decoder, step, DeflateDecoder::get_mut),
                State::Unknown(_) | State::Unsupported(_) | State::Plain => Ok(step.to_vec()),
            };
            let decoded = decoded.map_err(|error| format!("the body cannot be decompressed: {error}"))?;
            self.decoded += decoded.len();
            if self.decoded > MAX_DECODED {
                return Err(format!("the body decompresses to more than {} MiB", MAX_DECODED >> 20));
            }
            out.extend(decoded);
        }
        Ok(out.into())
    }

    /// Ends the body and returns its last bytes.
    ///
    /// # Errors
    /// When the compressed data is incomplete. The error is a clause.
    pub(super) fn finish(&mut self) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let done = match &mut self.state {
            State::Plain | State::Unsupported(_) => Ok(()),
            State::Unknown(received) => {
                out = std::mem::take(received);
                Ok(())
            }
            State::Gzip(decoder) => decoder.try_finish(),
            State::Zlib(decoder) => decoder.try_finish(),
            State::Deflate(decoder) => decoder.try_finish(),
        };
        match done {
            Ok(()) => Ok(out),
            Err(_) => Err(String::from("the body ends in the middle of its compressed data")),
        }
    }
}

/// Detects the encoding of a body from its first bytes. Returns `None` when more bytes are needed.
fn recognize(received: &[u8], declares_deflate: bool) -> Option<State> {
    let [first, rest @ ..] = received else { return None };
    if !declares_deflate && *first != GZIP[0] {
        return Some(State::Plain);
    }
    let second = rest.first()?;
    let state = if [*first, *second] == GZIP {
        State::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))
    } else if !declares_deflate {
        State::Plain
    } else if first & 15 == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0 {
        State::Zlib(Box::new(ZlibDecoder::new(Vec::new())))
    } else {
        State::Deflate(Box::new(DeflateDecoder::new(Vec::new())))
    };
    Some(state)
}

fn take<D: Write>(
    decoder: &mut D,
    bytes: &[u8],
    sink: impl Fn(&mut D) -> &mut Vec<u8>,
) -> io::Result<Vec<u8>> {
    decoder.write_all(bytes)?;
    // Makes all output that can be decoded available.
    decoder.flush()?;
    Ok(std::mem::take(sink(decoder)))
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn inflate(encoding: &str, body: &[u8], size: usize) -> Result<Vec<u8>, String> {
        let mut inflater = Inflater::new(encoding);
        let mut out = Vec::new();
        for chunk in body.chunks(size) {
            out.extend(inflater.feed(chunk.to_vec().into())?);
        }
        out.extend(inflater.finish()?);
        Ok(out)
    }

    #[test]
    fn bodies_are_decoded_for_any_chunks() {
        let text = b"data: {\"choices\": []}\n\ndata: [DONE]\n\n".repeat(20);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&text).unwrap();
        zlib.write_all(&text).unwrap();
        raw.write_all(&text).unwrap();
        let gzip = gzip.finish().unwrap();
        let members = [&gzip[..], &gzip[..]].concat();
        for (encoding, body, expected) in [
            ("gzip", &gzip, &text),
            // Detected by its first bytes.
            ("", &gzip, &text),
            ("x-gzip, identity", &members, &text.repeat(2)),
            ("deflate", &zlib.finish().unwrap(), &text),
            ("Deflate", &raw.finish().unwrap(), &text),
            // A wrong header.
            ("gzip", &text, &text),
            ("", &vec![0x1f], &vec![0x1f]),
            ("", &Vec::new(), &Vec::new()),
        ] {
            for size in [1, 2, 3, 7, 64, 4096] {
                assert_eq!(inflate(encoding, body, size).as_ref(), Ok(expected), "{encoding} by {size}");
            }
        }
    }

    #[test]
    fn decoded_output_is_returned_immediately() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let mut inflater = Inflater::new("gzip");
        for word in ["data: one\n\n", "data: two\n\n"] {
            encoder.write_all(word.as_bytes()).unwrap();
            encoder.flush().unwrap();
            let piece = std::mem::take(encoder.get_mut());
            assert_eq!(inflater.feed(piece.into()).unwrap(), word.as_bytes());
        }
    }

    #[test]
    fn invalid_and_oversized_bodies_are_errors() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"text").unwrap();
        let gzip = encoder.finish().unwrap();
        let error = |encoding: &str, body: &[u8]| inflate(encoding, body, 5).unwrap_err();
        assert!(error("br", b"\x0b\x02\x80").contains("encoded with `br`"));
        assert!(error("gzip", &gzip[..gzip.len() - 9]).contains("in the middle of its compressed data"));
        assert!(error("gzip", b"\x1f\x8b\x08\x00nothing at all").contains("cannot be decompressed"));
        // A bomb: 300 MiB in 300 KiB.
        let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
        for _ in 0..300 {
            bomb.write_all(&vec![0; 1 << 20]).unwrap();
        }
        let mut inflater = Inflater::new("gzip");
        let mut decoded = 0;
        let error = bomb.finish().unwrap().chunks(1 << 14).find_map(|piece| {
            match inflater.feed(piece.to_vec().into()) {
                Ok(bytes) => {
                    decoded += bytes.len();
                    None
                }
                Err(error) => Some(error),
            }
        });
        assert_eq!(error.as_deref(), Some("the body decompresses to more than 256 MiB"));
        assert!(decoded <= MAX_DECODED);
    }
}
