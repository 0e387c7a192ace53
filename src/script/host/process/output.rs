//! What a program writes: kept up to a limit, read to its end.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// What was read of one stream.
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    /// Whether there was more.
    pub(super) truncated: bool,
    most: usize,
}

impl Output {
    /// At most `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), truncated: false, most }
    }

    /// Reads `stream` to its end. What is beyond the limit is read, too, and dropped: a program that cannot write would
    /// end in another way than it otherwise does.
    pub(super) async fn fill(&mut self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 16 << 10];
        // A stream that breaks has ended.
        while let Ok(read) = stream.read(&mut buffer).await {
            if read == 0 {
                return;
            }
            let room = self.most.saturating_sub(self.bytes.len());
            let kept = buffer.get(..read.min(room)).unwrap_or_default();
            self.bytes.extend_from_slice(kept);
            self.truncated |= kept.len() < read;
        }
    }
}
