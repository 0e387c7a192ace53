//! Digests of texts.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of the parts in hexadecimal. Different parts have different digests, even if the joined parts are
/// the same.
pub fn digest<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let part = part.as_ref();
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
