//! Reads and decompresses a response body piece by piece. The size limit applies to the decompressed body.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH};

use super::failure::{explain, script_error};
use super::request::MAX_BYTES;
use crate::error::HostError;

/// Maximum number of compressed bytes to decompress before other tasks may run. They expand to at most about a thousand
/// times their length.
const PIECE: usize = 4 << 10;

/// The value of `Accept-Encoding`.
pub(super) const ACCEPTED: &str = "gzip";

/// Reads the body of `response`, at most `max_bytes` bytes, and removes the headers that do not apply to the
/// decompressed body. Messages name `url`.
///
/// # Errors
/// When the body is longer, incomplete, or not gzip although its header says so.
pub(super) async fn read(response: &mut Response, max_bytes: usize, url: &str) -> Result<Vec<u8>, HostError> {
    let is_gzip = is_gzip(response);
    if !is_gzip && response.content_length().is_some_and(|length| length > max_bytes as u64) {
        return Err(too_long(url, max_bytes));
    }
    let mut decoder = Decoder::new(is_gzip, max_bytes);
    while let Some(chunk) = response.chunk().await.map_err(|error| explain(&error, url))? {
        for piece in chunk.chunks(PIECE) {
            decoder.feed(piece).map_err(|error| error.into_error(url, max_bytes))?;
            if is_gzip {
                tokio::task::yield_now().await;
            }
        }
    }
    if is_gzip && decoder.was_fed {
        response.headers_mut().remove(CONTENT_ENCODING);
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    decoder.finish().map_err(|error| error.into_error(url, max_bytes))
}

/// Returns whether gzip is the body's only encoding. The script receives a body with other encodings unchanged.
fn is_gzip(response: &Response) -> bool {
    let mut encodings = response.headers().get_all(CONTENT_ENCODING).iter();
    let first = encodings.next().map(|value| value.as_bytes().to_ascii_lowercase());
    matches!(first.as_deref(), Some(b"gzip" | b"x-gzip")) && encodings.next().is_none()
}

fn too_long(url: &str, max_bytes: usize) -> HostError {
    script_error(format!(
        "{url}: the response body is longer than {max_bytes} bytes; request less, or increase max_bytes (at most {MAX_BYTES})"
    ))
}

/// The reason to reject a body.
#[derive(Debug, PartialEq, Eq)]
enum BodyError {
    TooLong,
    InvalidGzip,
}

impl BodyError {
    fn into_error(self, url: &str, max_bytes: usize) -> HostError {
        match self {
            Self::TooLong => too_long(url, max_bytes),
            Self::InvalidGzip => script_error(format!("{url}: the response body is not valid gzip")),
        }
    }
}

/// A body that arrives in pieces.
struct Decoder {
    output: Output,
    was_fed: bool,
}

enum Output {
    Plain(LimitedBuffer),
    Gzip(MultiGzDecoder<LimitedBuffer>),
}

impl Decoder {
    fn new(is_gzip: bool, max_bytes: usize) -> Self {
        let buffer = LimitedBuffer { bytes: Vec::new(), max_bytes, is_full: false };
        let output = if is_gzip { Output::Gzip(MultiGzDecoder::new(buffer)) } else { Output::Plain(buffer) };
        Self { output, was_fed: false }
    }

    fn feed(&mut self, piece: &[u8]) -> Result<(), BodyError> {
        self.was_fed = true;
        let (written, buffer) = match &mut self.output {
            Output::Plain(buffer) => (buffer.write_all(piece), &*buffer),
            Output::Gzip(decoder) => (decoder.write_all(piece), decoder.get_ref()),
        };
        written.map_err(|_| if buffer.is_full { BodyError::TooLong } else { BodyError::InvalidGzip })
    }

    fn finish(self) -> Result<Vec<u8>, BodyError> {
        match self.output {
            Output::Plain(buffer) => Ok(buffer.bytes),
            // The response to a `HEAD` request has the gzip header and no body.
            Output::Gzip(_) if !self.was_fed => Ok(Vec::new()),
            Output::Gzip(mut decoder) => {
                let ended = decoder.try_finish();
                let is_full = decoder.get_ref().is_full;
                let error = if is_full { BodyError::TooLong } else { BodyError::InvalidGzip };
                ended.and_then(|()| decoder.finish()).map(|buffer| buffer.bytes).map_err(|_| error)
            }
        }
    }
}

/// A buffer with a maximum length.
struct LimitedBuffer {
    bytes: Vec<u8>,
    max_bytes: usize,
    is_full: bool,
}

impl Write for LimitedBuffer {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + piece.len() > self.max_bytes {
            self.is_full = true;
            return Err(io::Error::other("the limit is reached"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn decompress(compressed: &[u8], max_bytes: usize, piece: usize) -> Result<Vec<u8>, BodyError> {
        let mut decoder = Decoder::new(true, max_bytes);
        compressed.chunks(piece).try_for_each(|piece| decoder.feed(piece))?;
        decoder.finish()
    }

    #[test]
    fn gzip_is_decompressed_in_pieces_of_any_size() {
        let text = b"some more text ".repeat(500);
        let compressed = gzip(&text);
        for piece in [1, 7, compressed.len()] {
            assert_eq!(decompress(&compressed, text.len(), piece).as_deref(), Ok(&text[..]));
            assert_eq!(decompress(&compressed, text.len() - 1, piece), Err(BodyError::TooLong));
            assert_eq!(
                decompress(&compressed[..compressed.len() - 1], text.len(), piece),
                Err(BodyError::InvalidGzip)
            );
            assert_eq!(decompress(&text, text.len(), piece), Err(BodyError::InvalidGzip));
            let twice = [compressed.clone(), compressed.clone()].concat();
            assert_eq!(
                decompress(&twice, text.len() * 2, piece).map(|bytes| bytes.len()),
                Ok(text.len() * 2)
            );
        }
        assert_eq!(decompress(&[], 1, 1), Ok(Vec::new()));
    }

    /// A gigabyte of zeros. The buffer never exceeds the limit.
    #[test]
    fn a_gzip_bomb_is_stopped_at_the_size_limit() {
        let member = gzip(&vec![0; 16 << 20]);
        let max_bytes = 1 << 20;
        let mut decoder = Decoder::new(true, max_bytes);
        let mut fed = 0;
        let stopped = std::iter::repeat_n(&member, 64).find_map(|member| {
            member.chunks(PIECE).find_map(|piece| {
                fed += piece.len();
                decoder.feed(piece).err()
            })
        });
        assert_eq!(stopped, Some(BodyError::TooLong));
        assert!(fed <= 2 * PIECE, "{fed} bytes were decompressed");
        let Output::Gzip(decoder) = decoder.output else { panic!() };
        assert!(decoder.get_ref().bytes.capacity() <= 2 * max_bytes);
    }
}
