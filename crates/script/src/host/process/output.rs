//! Reads a program's output to its end and keeps a limited number of bytes.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The output of one stream.
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    /// Whether bytes beyond the limit were discarded.
    pub(super) truncated: bool,
    limit: usize,
}

impl Output {
    /// Creates an empty output that keeps at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), truncated: false, limit }
    }

    /// Reads `stream` to its end. Bytes beyond the limit are read and discarded, because a program that cannot write
    /// would behave differently.
    pub(super) async fn fill(&mut self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 16 << 10];
        // A read error counts as the end.
        while let Ok(read) = stream.read(&mut buffer).await {
            if read == 0 {
                return;
            }
            let room = self.limit.saturating_sub(self.bytes.len());
            let kept = buffer.get(..read.min(room)).unwrap_or_default();
            self.bytes.extend_from_slice(kept);
            self.truncated |= kept.len() < read;
        }
    }
}
