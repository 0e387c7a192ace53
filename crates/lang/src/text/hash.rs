//! Hashes of texts.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::base64::to_base64;

/// Returns the 64-bit FNV-1a hash, which is the same in every version of deftool.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// Returns the SHA-256 of the parts in hexadecimal. Different parts have different digests, even if the joined parts are
/// the same.
pub fn digest<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let part = part.as_ref();
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

/// Returns the SHA-256 of bytes in hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns the SHA-256 of a text in base64, as in the `sha256-…` sources of a Content-Security-Policy.
pub fn sha256_base64(text: &str) -> String {
    to_base64(&Sha256::digest(text))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value is from `printf abc | openssl dgst -sha256 -binary | base64`.
    #[test]
    fn the_hash_is_the_standard_one() {
        assert_eq!(sha256_base64("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }
}
