//! Reads a response body. The size limit applies to the decompressed body.

use reqwest::Response;

use super::failure::{explain, script_error};
use super::request::MAX_BYTES;
use crate::error::HostError;

/// Reads the body of `response`, at most `max_bytes` bytes. Messages name `url`.
///
/// # Errors
/// When the body is longer, incomplete, or not compressed although its header says so.
pub(super) async fn read(response: &mut Response, max_bytes: usize, url: &str) -> Result<Vec<u8>, HostError> {
    let too_long = || {
        script_error(format!(
            "{url}: the response body is longer than {max_bytes} bytes; request less, or increase max_bytes (at most {MAX_BYTES})"
        ))
    };
    if response.content_length().is_some_and(|length| length > max_bytes as u64) {
        return Err(too_long());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| explain(&error, url))? {
        if body.len() + chunk.len() > max_bytes {
            return Err(too_long());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
