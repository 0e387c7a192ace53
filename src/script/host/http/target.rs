//! URLs of requests: what a script, or a server that redirects, may name.
//!
//! In: a text. Out: an HTTP URL without user, password, fragment and a dot at its host's end. What the URL standard
//! would quietly mend (line ends, tabs, blanks around it) is refused: it is the sign of a text that was put together
//! from parts of which one is not what its author thinks.

use url::Url;

use crate::script::error::clean;

/// Longest URL, in bytes, its query included.
pub(super) const MAX_URL: usize = 16 << 10;

/// Reads a script's URL.
///
/// # Errors
/// When it is none that may be requested; in a clause.
pub(super) fn parse(text: &str) -> Result<Url, String> {
    if let Some(character) = text.chars().find(|character| character.is_control() || *character == ' ') {
        let name = if character == ' ' {
            String::from("a space")
        } else {
            format!("the control character U+{:04X}", u32::from(character))
        };
        return Err(format!(
            "the URL {} holds {name}; pass what varies as query = {{ … }}, which is escaped",
            shown_text(text)
        ));
    }
    if text.len() > MAX_URL {
        return Err(format!("the URL is longer than {} KiB", MAX_URL >> 10));
    }
    let url = Url::parse(text).map_err(|error| {
        format!(
            "{} is no URL ({error}); write it whole, as in https://api.example.org/path",
            shown_text(text)
        )
    })?;
    tidy(url)
}

/// Where the `Location` of an answer of `base` leads.
///
/// # Errors
/// As [`parse`].
pub(super) fn follow(base: &Url, location: &[u8]) -> Result<Url, String> {
    let broken = || format!("its Location {} is no URL", shown_text(&String::from_utf8_lossy(location)));
    let text = std::str::from_utf8(location).map_err(|_| broken())?;
    if text.len() > MAX_URL || text.chars().any(char::is_control) {
        return Err(broken());
    }
    tidy(base.join(text).map_err(|_| broken())?)
}

fn tidy(mut url: Url) -> Result<Url, String> {
    match url.scheme() {
        "http" | "https" => {}
        "file" => {
            return Err(String::from(
                "only http and https are spoken, not file; files are read with fs.read",
            ));
        }
        other => return Err(format!("only http and https are spoken, not {}", clean(other, 30))),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!(
            "a user or password in a URL is refused ({}); send an authorization header",
            shown(&url)
        ));
    }
    let host = url.host_str().unwrap_or_default();
    if let Some(bare) = host.strip_suffix('.') {
        if bare.ends_with('.') {
            return Err(format!("{} is no URL (its host ends with two dots)", shown(&url)));
        }
        let bare = bare.to_owned();
        url.set_host(Some(&bare)).map_err(|error| format!("{} is no URL ({error})", shown(&url)))?;
    }
    url.set_fragment(None);
    Ok(url)
}

/// A URL as messages name it: without user, password and query, which may be secrets.
pub(super) fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    // Neither fails for a URL with a host.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    clean(shown.as_str(), 200)
}

/// What may be no URL, in quotation marks and without what follows a question mark.
fn shown_text(text: &str) -> String {
    let bare = text.split('?').next().unwrap_or_default();
    format!("\"{}\"", clean(bare, 200).replace(['\n', '\t'], "\u{FFFD}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_strictly() {
        for (text, expected) in [
            ("https://api.example.org/a?b=c#d", "https://api.example.org/a?b=c"),
            ("HTTP://API.example.org.:80/", "http://api.example.org/"),
            ("http://example.org..", "no URL"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http:\\\\evil.example\\x", "http://evil.example/x"),
            ("file:///etc/passwd", "fs.read"),
            ("ftp://example.org/", "not ftp"),
            ("data:text/plain,x", "not data"),
            ("javascript:alert(1)", "not javascript"),
            ("gopher://127.0.0.1:70/", "not gopher"),
            ("http://user@example.org/", "a user or password"),
            ("http://example.org@evil.example/", "a user or password"),
            ("http://:secret@example.org/", "a user or password"),
            ("http://example.org/a b", "a space"),
            (" http://example.org/", "a space"),
            ("http://example.org/\r\nX: y", "U+000D"),
            ("http://exa\tmple.org/", "U+0009"),
            ("http://example.org/\0", "U+0000"),
            ("http://example.org/\u{7F}", "U+007F"),
            ("/path", "no URL"),
            ("", "no URL"),
            ("http://", "no URL"),
            ("http://exa mple.org", "a space"),
            ("http://[::1%25eth0]/", "no URL"),
            ("http://example.org:99999/", "no URL"),
            ("http://256.256.256.256/", "no URL"),
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
    fn locations_are_read_against_the_url_that_redirects() {
        let base = Url::parse("https://example.org/a/b?c").unwrap();
        for (location, expected) in [
            (&b"d"[..], "https://example.org/a/d"),
            (b"/d e", "https://example.org/d%20e"),
            (b"//other.example/x#y", "https://other.example/x"),
            (b"http://other.example./", "http://other.example/"),
            (b"file:///etc/passwd", "not file"),
            (b"https://user@example.org/", "a user or password"),
            (b"\xFF", "no URL"),
            (b"http://[", "no URL"),
        ] {
            let read = follow(&base, location).map_or_else(|error| error, |url| url.to_string());
            assert!(
                if expected.starts_with("http") { read == expected } else { read.contains(expected) },
                "{read}"
            );
        }
    }
}
