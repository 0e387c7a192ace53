//! Reads and decompresses a response body piece by piece. The size limit applies to the decompressed body.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH};

use super::failure::{explain, failed};
use super::request::MAX_BYTES;
use crate::script::error::HostError;

/// Maximum number of compressed bytes to decompress before other tasks may run: they expand to at most a thousand times
/// as many.
const PIECE: usize = 4 << 10;

/// The value of `Accept-Encoding`.
pub(super) const ACCEPTED: &str = "gzip";

/// Reads the body of `response`, at most `most` bytes, and removes the headers that do not apply to the decompressed
/// body. Messages name `url`.
///
/// # Errors
/// When the body is longer, incomplete, or not gzip although its header says so.
pub(super) async fn read(response: &mut Response, most: usize, url: &str) -> Result<Vec<u8>, HostError> {
    let is_gzip = is_gzip(response);
    if !is_gzip && response.content_length().is_some_and(|length| length > most as u64) {
        return Err(too_long(url, most));
    }
    let mut unpacker = Unpacker::new(is_gzip, most);
    while let Some(chunk) = response.chunk().await.map_err(|error| explain(&error, url))? {
        for piece in chunk.chunks(PIECE) {
            unpacker.feed(piece).map_err(|refusal| refusal.told(url, most))?;
            if is_gzip {
                tokio::task::yield_now().await;
            }
        }
    }
    if is_gzip && unpacker.was_fed {
        response.headers_mut().remove(CONTENT_ENCODING);
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    unpacker.finish().map_err(|refusal| refusal.told(url, most))
}

/// Returns whether gzip is the body's only encoding. The script receives a body with other encodings unchanged.
fn is_gzip(response: &Response) -> bool {
    let mut encodings = response.headers().get_all(CONTENT_ENCODING).iter();
    let first = encodings.next().map(|value| value.as_bytes().to_ascii_lowercase());
    matches!(first.as_deref(), Some(b"gzip" | b"x-gzip")) && encodings.next().is_none()
}

fn too_long(url: &str, most: usize) -> HostError {
    failed(format!(
        "{url}: the answer's body is longer than {most} bytes; ask for less, or for more with max_bytes (at most {MAX_BYTES})"
    ))
}

/// The reason to reject a body.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    TooLong,
    NoGzip,
}

impl Refusal {
    fn told(self, url: &str, most: usize) -> HostError {
        match self {
            Self::TooLong => too_long(url, most),
            Self::NoGzip => failed(format!("{url}: the answer's body is not the gzip that its header says")),
        }
    }
}

/// A body that arrives in pieces.
struct Unpacker {
    to: To,
    was_fed: bool,
}

enum To {
    Plain(Capped),
    Gzip(MultiGzDecoder<Capped>),
}

impl Unpacker {
    fn new(is_gzip: bool, most: usize) -> Self {
        let capped = Capped { bytes: Vec::new(), most, is_full: false };
        let to = if is_gzip { To::Gzip(MultiGzDecoder::new(capped)) } else { To::Plain(capped) };
        Self { to, was_fed: false }
    }

    fn feed(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        self.was_fed = true;
        let (written, capped) = match &mut self.to {
            To::Plain(capped) => (capped.write_all(piece), &*capped),
            To::Gzip(decoder) => (decoder.write_all(piece), decoder.get_ref()),
        };
        written.map_err(|_| if capped.is_full { Refusal::TooLong } else { Refusal::NoGzip })
    }

    fn finish(self) -> Result<Vec<u8>, Refusal> {
        match self.to {
            To::Plain(capped) => Ok(capped.bytes),
            // The response to a `HEAD` request has the gzip header and no body.
            To::Gzip(_) if !self.was_fed => Ok(Vec::new()),
            To::Gzip(mut decoder) => {
                let ended = decoder.try_finish();
                let is_full = decoder.get_ref().is_full;
                let refusal = if is_full { Refusal::TooLong } else { Refusal::NoGzip };
                ended.and_then(|()| decoder.finish()).map(|capped| capped.bytes).map_err(|_| refusal)
            }
        }
    }
}

/// A buffer with a maximum length.
struct Capped {
    bytes: Vec<u8>,
    most: usize,
    is_full: bool,
}

impl Write for Capped {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + piece.len() > self.most {
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

    fn unpack(packed: &[u8], most: usize, piece: usize) -> Result<Vec<u8>, Refusal> {
        let mut unpacker = Unpacker::new(true, most);
        packed.chunks(piece).try_for_each(|piece| unpacker.feed(piece))?;
        unpacker.finish()
    }

    #[test]
    fn gzip_is_unpacked_however_it_comes() {
        let text = b"what was said ".repeat(500);
        let packed = gzip(&text);
        for piece in [1, 7, packed.len()] {
            assert_eq!(unpack(&packed, text.len(), piece).as_deref(), Ok(&text[..]));
            assert_eq!(unpack(&packed, text.len() - 1, piece), Err(Refusal::TooLong));
            assert_eq!(unpack(&packed[..packed.len() - 1], text.len(), piece), Err(Refusal::NoGzip));
            assert_eq!(unpack(&text, text.len(), piece), Err(Refusal::NoGzip));
            let twice = [packed.clone(), packed.clone()].concat();
            assert_eq!(unpack(&twice, text.len() * 2, piece).map(|bytes| bytes.len()), Ok(text.len() * 2));
        }
        assert_eq!(unpack(&[], 1, 1), Ok(Vec::new()));
    }

    /// A gigabyte of zeros. The buffer never exceeds the limit.
    #[test]
    fn a_bomb_is_stopped_while_it_expands() {
        let member = gzip(&vec![0; 16 << 20]);
        let most = 1 << 20;
        let mut unpacker = Unpacker::new(true, most);
        let mut fed = 0;
        let stopped = std::iter::repeat_n(&member, 64).find_map(|member| {
            member.chunks(PIECE).find_map(|piece| {
                fed += piece.len();
                unpacker.feed(piece).err()
            })
        });
        assert_eq!(stopped, Some(Refusal::TooLong));
        assert!(fed <= 2 * PIECE, "{fed} bytes were looked at");
        let To::Gzip(decoder) = unpacker.to else { panic!() };
        assert!(decoder.get_ref().bytes.capacity() <= 2 * most);
    }
}
