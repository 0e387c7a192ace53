//! Takes the API key out of whatever a server sends back, across the cuts between reads.

use serde_json::Value;

use super::secrets::is_secret_name;

/// What stands where a key stood.
const REDACTED: &[u8] = b"[redacted]";

/// What people set where a server wants a key and does not look at it; no secrets, and words of ordinary text.
const PLACEHOLDERS: [&str; 9] =
    ["none", "null", "empty", "dummy", "test", "local", "ollama", "lm-studio", "sk-no-key-required"];

/// Shorter keys would be found in every other word.
const MIN_SECRET: usize = 4;

/// Replaces secrets in a stream of bytes.
#[derive(Clone)]
pub(crate) struct Redactor {
    /// Each secret as it is and, where that differs, as JSON writes it with its slashes escaped. Empty: none.
    forms: Vec<Vec<u8>>,
    held: Vec<u8>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// A redactor of `secrets`; without one, or with very short ones, bytes pass as they are.
    pub(crate) fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let mut forms = Vec::new();
        for secret in secrets.into_iter().filter(|secret| is_secret(secret)) {
            forms.push(secret.as_bytes().to_vec());
            if secret.contains('/') {
                forms.push(secret.replace('/', "\\/").into_bytes());
            }
        }
        Self { forms, held: Vec::new() }
    }

    /// The bytes that may go on; an end that could begin the secret is held back.
    pub(super) fn feed(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        if self.forms.is_empty() {
            return bytes;
        }
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(&bytes);
        let mut out = Vec::with_capacity(all.len());
        let mut rest = all.as_slice();
        while let Some((at, length)) = self.find(rest) {
            out.extend_from_slice(rest.get(..at).unwrap_or_default());
            out.extend_from_slice(REDACTED);
            rest = rest.get(at + length..).unwrap_or_default();
        }
        let (known, open) = rest.split_at(rest.len() - self.open_end(rest));
        out.extend_from_slice(known);
        self.held = open.to_vec();
        out
    }

    /// What was held back when the stream ended.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// A whole text without the secret.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut all = Self { forms: self.forms.clone(), held: Vec::new() };
        let mut bytes = all.feed(text.as_bytes().to_vec());
        bytes.extend(all.finish());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Takes the secret out of every text and every name of a member.
    pub(crate) fn value(&self, value: &mut Value) {
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

    /// Whether there is no secret.
    pub(super) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Whether the secret stands in `text`.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.find(text.as_bytes()).is_some()
    }

    /// Bytes of the longest way to write a secret.
    pub(super) fn longest(&self) -> usize {
        self.forms.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Where the first secret begins and how long it is.
    fn find(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let found =
            self.forms.iter().filter_map(|form| Some((memchr::memmem::find(bytes, form)?, form.len())));
        found.min()
    }

    /// How many bytes at the end could begin a secret.
    fn open_end(&self, bytes: &[u8]) -> usize {
        let open = |form: &Vec<u8>| {
            let longest = form.len().saturating_sub(1).min(bytes.len());
            (1..=longest).rev().find(|&length| bytes.get(bytes.len() - length..) == form.get(..length))
        };
        self.forms.iter().filter_map(open).max().unwrap_or(0)
    }
}

/// The secrets that a URL holds: its password, and values of its query whose names say so.
pub(super) fn secrets_of_url(url: &reqwest::Url) -> Vec<String> {
    let mut secrets: Vec<String> = url.password().map(str::to_owned).into_iter().collect();
    for (name, value) in url.query_pairs() {
        if is_secret_name(&name) || matches!(&*name, "sig" | "signature") {
            secrets.push(value.into_owned());
        }
    }
    // A server may echo them as they were sent, too.
    let query = url.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let written: Vec<String> =
        query.map(|(_, value)| value.to_owned()).filter(|value| !secrets.contains(value)).collect();
    let is_known = |value: &String| {
        let decoded = reqwest::Url::parse(&format!("x:?v={value}")).ok();
        let decoded = decoded.and_then(|url| url.query_pairs().next().map(|(_, value)| value.into_owned()));
        decoded.is_some_and(|value| secrets.contains(&value))
    };
    let written: Vec<String> = written.into_iter().filter(is_known).collect();
    secrets.extend(written);
    secrets
}

fn is_secret(key: &str) -> bool {
    key.len() >= MIN_SECRET && !PLACEHOLDERS.contains(&key.to_ascii_lowercase().as_str())
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
        let slashes = Redactor::new(Some("key/with/slashes"));
        assert_eq!(
            slashes.text(r"key/with/slashes key\/with\/slashes key/with\/"),
            r"[redacted] [redacted] key/with\/"
        );
    }
}
