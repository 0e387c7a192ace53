//! Parses the URLs of requests and redirects.
//!
//! The result is an HTTP URL without user, password, fragment and trailing dot in its host. Characters that the URL
//! standard would silently remove (line ends, tabs, surrounding spaces) are errors, because they indicate a URL that
//! was assembled from unexpected parts.

use url::Url;

use crate::error::clean;

/// Maximum length of a URL including its query, in bytes.
pub(super) const MAX_URL: usize = 16 << 10;

/// Parses a URL from a script.
///
/// # Errors
/// A message when the URL is invalid or not allowed.
pub(super) fn parse(text: &str) -> Result<Url, String> {
    if let Some(character) = text.chars().find(|character| character.is_control() || *character == ' ') {
        let name = if character == ' ' {
            String::from("a space")
        } else {
            format!("the control character U+{:04X}", u32::from(character))
        };
        return Err(format!(
            "the URL {} contains {name}; pass variable parts as query = {{ … }}, which is escaped",
            redacted_text(text)
        ));
    }
    if text.len() > MAX_URL {
        return Err(format!("the URL is longer than {} KiB", MAX_URL >> 10));
    }
    let url = Url::parse(text).map_err(|error| {
        format!(
            "invalid URL {} ({error}), expected a full URL such as https://api.example.org/path",
            redacted_text(text)
        )
    })?;
    sanitize(url)
}

/// Resolves the `Location` header of a response against its URL `base`.
///
/// # Errors
/// As for [`parse`].
pub(super) fn follow(base: &Url, location: &[u8]) -> Result<Url, String> {
    let broken = || format!("invalid Location {}", redacted_text(&String::from_utf8_lossy(location)));
    let text = std::str::from_utf8(location).map_err(|_| broken())?;
    if text.len() > MAX_URL || text.chars().any(char::is_control) {
        return Err(broken());
    }
    sanitize(base.join(text).map_err(|_| broken())?)
}

fn sanitize(mut url: Url) -> Result<Url, String> {
    match url.scheme() {
        "http" | "https" => {}
        "file" => {
            return Err(String::from(
                "unsupported scheme `file`, expected http or https; use fs.read to read files",
            ));
        }
        other => return Err(format!("unsupported scheme `{}`, expected http or https", clean(other, 30))),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!(
            "the URL must not contain a user or password ({}); use an authorization header",
            redacted(&url)
        ));
    }
    let host = url.host_str().unwrap_or_default();
    if let Some(bare) = host.strip_suffix('.') {
        if bare.ends_with('.') {
            return Err(format!("invalid URL {} (the host ends with two dots)", redacted(&url)));
        }
        let bare = bare.to_owned();
        url.set_host(Some(&bare)).map_err(|error| format!("invalid URL {} ({error})", redacted(&url)))?;
    }
    url.set_fragment(None);
    Ok(url)
}

/// Returns a URL for messages, without user, password, query and fragment, which may contain secrets.
pub(super) fn redacted(url: &Url) -> String {
    let mut redacted = url.clone();
    // These do not fail for a URL with a host.
    let _ = redacted.set_username("");
    let _ = redacted.set_password(None);
    redacted.set_query(None);
    redacted.set_fragment(None);
    clean(redacted.as_str(), 200)
}

/// Returns a possibly invalid URL for messages, quoted and without its query.
fn redacted_text(text: &str) -> String {
    let bare = text.split('?').next().unwrap_or_default();
    format!("\"{}\"", clean(bare, 200).replace(['\n', '\t'], "\u{FFFD}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_strictly() {
        for (text, expected) in [
            ("https://api.example.org/a?b=c#d", "https://api.example.org/a?b=c"),
            ("HTTP://API.example.org.:80/", "http://api.example.org/"),
            ("http://example.org..", "invalid URL"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http:\\\\evil.example\\x", "http://evil.example/x"),
            ("file:///etc/passwd", "fs.read"),
            ("ftp://example.org/", "`ftp`"),
            ("data:text/plain,x", "`data`"),
            ("javascript:alert(1)", "`javascript`"),
            ("gopher://127.0.0.1:70/", "`gopher`"),
            ("http://user@example.org/", "a user or password"),
            ("http://example.org@evil.example/", "a user or password"),
            ("http://:secret@example.org/", "a user or password"),
            ("http://example.org/a b", "a space"),
            (" http://example.org/", "a space"),
            ("http://example.org/\r\nX: y", "U+000D"),
            ("http://exa\tmple.org/", "U+0009"),
            ("http://example.org/\0", "U+0000"),
            ("http://example.org/\u{7F}", "U+007F"),
            ("/path", "invalid URL"),
            ("", "invalid URL"),
            ("http://", "invalid URL"),
            ("http://exa mple.org", "a space"),
            ("http://[::1%25eth0]/", "invalid URL"),
            ("http://example.org:99999/", "invalid URL"),
            ("http://256.256.256.256/", "invalid URL"),
        ] {
            let read = parse(text).map_or_else(|error| error, |url| url.to_string());
            assert!(
                if expected.starts_with("http") { read == expected } else { read.contains(expected) },
                "{text:?}: {read}"
            );
            assert!(!read.contains("secret"), "{read}");
        }
        assert!(
            parse(&format!("http://example.org/{}", "a".repeat(MAX_URL))).unwrap_err().contains("16 KiB")
        );
    }

    #[test]
    fn a_location_is_resolved_against_the_redirecting_url() {
        let base = Url::parse("https://example.org/a/b?c").unwrap();
        for (location, expected) in [
            (&b"d"[..], "https://example.org/a/d"),
            (b"/d e", "https://example.org/d%20e"),
            (b"//other.example/x#y", "https://other.example/x"),
            (b"http://other.example./", "http://other.example/"),
            (b"file:///etc/passwd", "`file`"),
            (b"https://user@example.org/", "a user or password"),
            (b"\xFF", "invalid Location"),
            (b"http://[", "invalid Location"),
        ] {
            let read = follow(&base, location).map_or_else(|error| error, |url| url.to_string());
            assert!(
                if expected.starts_with("http") { read == expected } else { read.contains(expected) },
                "{read}"
            );
        }
    }
}
