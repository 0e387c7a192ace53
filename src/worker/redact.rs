//! Takes the API key out of whatever a server sends back, across the cuts between reads.

/// What stands where a key stood.
const REDACTED: &[u8] = b"[redacted]";

/// Keys shorter than this are placeholders such as `none`, and would be found in ordinary text.
const MIN_SECRET: usize = 8;

/// Replaces one secret in a stream of bytes.
#[derive(Debug, Clone)]
pub(super) struct Redactor {
    secret: Vec<u8>,
    held: Vec<u8>,
}

impl Redactor {
    /// A redactor of `secret`; without one, or with a very short one, bytes pass as they are.
    pub(super) fn new(secret: Option<&str>) -> Self {
        let secret = secret.filter(|secret| secret.len() >= MIN_SECRET).unwrap_or_default();
        Self { secret: secret.as_bytes().to_vec(), held: Vec::new() }
    }

    /// The bytes that may go on; an end that could begin the secret is held back.
    pub(super) fn feed(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        if self.secret.is_empty() {
            return bytes;
        }
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(&bytes);
        let mut out = Vec::with_capacity(all.len());
        let mut rest = all.as_slice();
        while let Some(at) = memchr::memmem::find(rest, &self.secret) {
            out.extend_from_slice(rest.get(..at).unwrap_or_default());
            out.extend_from_slice(REDACTED);
            rest = rest.get(at + self.secret.len()..).unwrap_or_default();
        }
        let longest = (self.secret.len() - 1).min(rest.len());
        let held = (1..=longest)
            .rev()
            .find(|&len| rest.get(rest.len() - len..) == self.secret.get(..len))
            .unwrap_or(0);
        let (pass, hold) = rest.split_at(rest.len() - held);
        out.extend_from_slice(pass);
        self.held = hold.to_vec();
        out
    }

    /// What was held back when the stream ended.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// A whole text without the secret.
    pub(super) fn text(&self, text: &str) -> String {
        let mut all = Self { secret: self.secret.clone(), held: Vec::new() };
        let mut bytes = all.feed(text.as_bytes().to_vec());
        bytes.extend(all.finish());
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_never_passes_however_it_is_cut() {
        let text = "a sk-secret-key b sk-secret-kex sk-secresk-secret-key";
        for size in 1..text.len() {
            let mut redactor = Redactor::new(Some("sk-secret-key"));
            let mut out = Vec::new();
            for chunk in text.as_bytes().chunks(size) {
                out.extend(redactor.feed(chunk.to_vec()));
            }
            out.extend(redactor.finish());
            assert_eq!(String::from_utf8(out).unwrap(), "a [redacted] b sk-secret-kex sk-secre[redacted]");
        }
        assert_eq!(Redactor::new(Some("none")).text("none"), "none");
    }
}
