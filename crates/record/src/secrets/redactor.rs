//! Redacts the API key in all data from a server, even if it is split over several reads.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::forms::SecretForms;
use super::mask::is_secret_name;

/// Replacement of a key.
pub const REDACTED: &str = "[redacted]";

/// Common placeholder keys for servers that ignore the key. They are ordinary words and not secret.
const PLACEHOLDERS: [&str; 9] =
    ["none", "null", "empty", "dummy", "test", "local", "ollama", "lm-studio", "sk-no-key-required"];

/// Minimum length of a redacted key, or part of a key, in bytes. Shorter ones match ordinary words.
const MIN_SECRET: usize = 4;

/// Replaces secrets in a stream of bytes, in every form of `SecretForms`. Overlapping secrets are replaced by
/// one mark, so that no part of them remains.
#[derive(Clone)]
pub struct Redactor {
    secrets: Arc<[SecretForms]>,
    /// The last bytes of the stream so far, which may be the start of a secret.
    held: Vec<u8>,
    /// Number of bytes at the start of `held` that belong to a secret that was already replaced.
    covered: usize,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

/// The end of the bytes passed to [`Redactor::pass`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// More may follow.
    Open,
    /// The stream is complete.
    Complete,
    /// The stream was interrupted: it may end with a prefix of a secret.
    Cut,
}

impl Redactor {
    /// Creates a redactor of `secrets`. Very short secrets and placeholders are ignored.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let secrets = secrets.into_iter().filter(|secret| is_secret(secret)).map(SecretForms::new);
        Self { secrets: secrets.collect(), held: Vec::new(), covered: 0 }
    }

    /// Returns the bytes that may pass. The last bytes are retained while they may be a prefix of a secret.
    pub fn feed(&mut self, bytes: Bytes) -> Bytes {
        if self.is_empty() {
            return bytes;
        }
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(&bytes);
        self.pass(&all, End::Open).into()
    }

    /// Ends a complete stream: returns the retained bytes.
    pub fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        self.pass(&held, End::Complete)
    }

    /// Ends an interrupted stream: returns the retained bytes, without a prefix of a secret.
    pub fn cut(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        self.pass(&held, End::Cut)
    }

    /// Returns a complete text without secrets.
    pub fn text(&self, text: &str) -> String {
        let mut whole = Self { secrets: Arc::clone(&self.secrets), held: Vec::new(), covered: 0 };
        String::from_utf8_lossy(&whole.pass(text.as_bytes(), End::Complete)).into_owned()
    }

    /// Redacts secrets in all strings and member names of a value.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if self.is_in(text) {
                    *text = self.text(text);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => {
                members.values_mut().for_each(|member| self.value(member));
                if members.keys().any(|key| self.is_in(key)) {
                    let renamed = std::mem::take(members).into_iter();
                    *members = renamed.map(|(key, value)| (self.text(&key), value)).collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Whether `text` contains a secret.
    pub fn is_in(&self, text: &str) -> bool {
        let text = text.as_bytes();
        (0..text.len()).any(|at| self.secrets.iter().any(|secret| secret.match_at(text, at).end.is_some()))
    }

    /// Whether a prefix of a secret with `length` bytes is too long to be ordinary text.
    fn is_distinctive(length: usize) -> bool {
        length >= MIN_SECRET
    }

    /// Returns `all` without secrets, up to the first possible secret that is incomplete. The rest is retained.
    fn pass(&mut self, all: &[u8], end: End) -> Vec<u8> {
        let mut out = Vec::with_capacity(all.len());
        // Everything before `done` is in `out` or replaced.
        let mut done = std::mem::take(&mut self.covered);
        for at in 0..all.len() {
            let (mut longest, mut is_open) = (None, false);
            for secret in self.secrets.iter() {
                let found = secret.match_at(all, at);
                longest = longest.max(found.end);
                is_open |= found.is_open;
            }
            if is_open && end == End::Open {
                out.extend_from_slice(all.get(done..at).unwrap_or_default());
                self.held = all.get(at..).unwrap_or_default().to_vec();
                self.covered = done.saturating_sub(at);
                return out;
            }
            if is_open && end == End::Cut && Self::is_distinctive(all.len() - at) {
                longest = Some(all.len());
            }
            let Some(longest) = longest else { continue };
            // Overlapping secrets share one mark.
            if at >= done {
                out.extend_from_slice(all.get(done..at).unwrap_or_default());
                out.extend_from_slice(REDACTED.as_bytes());
            }
            done = done.max(longest);
        }
        out.extend_from_slice(all.get(done..).unwrap_or_default());
        out
    }
}

/// Returns the secrets of a URL: its password, and query values with secret names.
pub fn secrets_of_url(url: &url::Url) -> Vec<String> {
    let decoded = |text: &str| {
        let query = format!("v={}", text.replace('+', "%2B"));
        url::form_urlencoded::parse(query.as_bytes()).next().map(|(_, value)| value.into_owned())
    };
    let mut secrets: Vec<String> = url.password().and_then(decoded).into_iter().collect();
    for (name, value) in url.query_pairs() {
        if is_secret_name(&name) || matches!(&*name, "sig" | "signature") {
            secrets.push(value.into_owned());
        }
    }
    secrets
}

fn is_secret(key: &str) -> bool {
    key.len() >= MIN_SECRET && !PLACEHOLDERS.contains(&key.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Redacts `text` in reads of `size` bytes.
    fn streamed(secrets: &[&str], text: &str, size: usize) -> String {
        let mut redactor = Redactor::new(secrets.iter().copied());
        let mut out: Vec<u8> =
            text.as_bytes().chunks(size).flat_map(|chunk| redactor.feed(chunk.to_vec().into())).collect();
        out.extend(redactor.finish());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_key_is_redacted_for_any_chunks() {
        let text = "a sk-secret-key b sk-secret-kex sk-secresk-secret-key";
        for size in 1..text.len() {
            assert_eq!(
                streamed(&["sk-secret-key"], text, size),
                "a [redacted] b sk-secret-kex sk-secre[redacted]"
            );
        }
        assert_eq!(Redactor::new(Some("none")).text("none"), "none");
        let slashes = Redactor::new(Some("key/with/slashes"));
        assert_eq!(
            slashes.text(r"key/with/slashes key\/with\/slashes key/with\/"),
            r"[redacted] [redacted] key/with\/"
        );
    }

    #[test]
    fn no_part_of_overlapping_secrets_remains() {
        for (secrets, text, expected) in [
            // The longest of several secrets that begin at the same position, in any order.
            (&["sk-abcd", "sk-abcd-efgh"][..], "a sk-abcd-efgh b sk-abcd c", "a [redacted] b [redacted] c"),
            (&["sk-abcd-efgh", "sk-abcd"], "a sk-abcd-efgh b sk-abcd-efg", "a [redacted] b [redacted]-efg"),
            // A secret that begins within a different one.
            (&["one-two", "two-three"], "one-two-three one-two-thre", "[redacted] [redacted]-thre"),
            (&["abcabcx", "cabc"], "abcabcabcx", "ab[redacted]"),
            (&["aaaa"], "aaaaaaa b aaa", "[redacted] b aaa"),
            // A secret within a different one, and two adjacent secrets.
            (&["two", "one-two-three", "-two"], "one-two-three", "[redacted]"),
            (&["abcd"], "abcdabcd", "[redacted][redacted]"),
        ] {
            for size in 1..=text.len() {
                assert_eq!(streamed(secrets, text, size), expected, "{secrets:?} by {size}");
            }
            assert_eq!(Redactor::new(secrets.iter().copied()).text(text), expected);
        }
    }

    #[test]
    fn encoded_keys_are_redacted_for_any_chunks() {
        let key = "sk-0123456789??>/";
        // In base64 alone and after one and two bytes; percent-encoded completely, partly and in base64.
        for (written, left) in [
            ("c2stMDEyMzQ1Njc4OT8/Pi8=", "="),
            ("YXNrLTAxMjM0NTY3ODk/Pz4v", "YX"),
            ("YWFzay0wMTIzNDU2Nzg5Pz8-Lw==", "YWF=="),
            ("c2stMDEyMzQ1Njc4OT8%2FPi8%3D", "%3D"),
            (r"c2stMDEyMzQ1Njc4OT8\/Pi8=", "="),
            ("sk-0123456789%3F%3f%3E%2F", ""),
            ("%73%6B%2d0123456789??%3e/", ""),
            (r"sk-0123456789?%3f>\/", ""),
        ] {
            let text = format!("key {written} end");
            let (before, after) = left.split_at(left.find(['=', '%']).unwrap_or(left.len()));
            for size in 1..=text.len() {
                assert_eq!(
                    streamed(&[key], &text, size),
                    format!("key {before}[redacted]{after} end"),
                    "{written} by {size}"
                );
            }
            assert!(Redactor::new(Some(key)).is_in(&text), "{written}");
        }
    }

    #[test]
    fn an_interrupted_stream_does_not_end_with_part_of_a_key() {
        for (text, complete, cut) in [
            ("a sk-sec", "a sk-sec", "a [redacted]"),
            ("a sk-secret-ke", "a sk-secret-ke", "a [redacted]"),
            ("c2stc2VjcmV0LWt", "c2stc2VjcmV0LWt", "[redacted]"),
            // A short prefix may be ordinary text.
            ("a sk-", "a sk-", "a sk-"),
            ("a sk-s", "a sk-s", "a [redacted]"),
            ("a sk-secret-key", "a [redacted]", "a [redacted]"),
            ("a sk-sek", "a sk-sek", "a sk-sek"),
        ] {
            for (is_cut, expected) in [(false, complete), (true, cut)] {
                let mut redactor = Redactor::new(Some("sk-secret-key"));
                let mut out = redactor.feed(text.as_bytes().to_vec().into()).to_vec();
                out.extend(if is_cut { redactor.cut() } else { redactor.finish() });
                assert_eq!(String::from_utf8(out).unwrap(), expected, "{text}");
            }
        }
    }

    #[test]
    fn the_secrets_of_a_url_are_redacted_encoded_and_decoded() {
        let url = url::Url::parse("https://u:p%40ssword@h/v1?api-key=ab%2Bcd+ef&x=1").unwrap();
        let secrets = secrets_of_url(&url);
        let redactor = Redactor::new(secrets.iter().map(String::as_str));
        assert_eq!(
            redactor.text("p%40ssword p@ssword ab%2Bcd+ef ab+cd ef x=1"),
            "[redacted] [redacted] [redacted] [redacted] x=1"
        );
    }

    #[test]
    fn the_names_of_members_are_redacted() {
        let mut value = serde_json::json!({"x": {"a sk-key b": ["sk-key"]}, "y": 1});
        Redactor::new(Some("sk-key")).value(&mut value);
        assert_eq!(value, serde_json::json!({"x": {"a [redacted] b": ["[redacted]"]}, "y": 1}));
    }
}
