//! URLs of a model server.

use reqwest::Url;

/// Returns `{base}/{path}`. A query of the base is kept (`?api-version=…`).
pub(crate) fn endpoint_url(base: &str, path: &str) -> Result<Url, String> {
    let advice = "write http://HOST:PORT/v1";
    let mut url =
        Url::parse(base.trim()).map_err(|error| format!("invalid endpoint `{base}`: {error}; {advice}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(format!("invalid endpoint `{base}`: expected an HTTP URL; {advice}"));
    }
    let whole = format!("{}/{path}", url.path().trim_end_matches('/'));
    url.set_path(&whole);
    url.set_fragment(None);
    Ok(url)
}

/// Returns the absolute URL of a redirect from `url`, normalized and without credentials. `location` may be relative,
/// such as `/openai/v1/chat/completions`.
pub(super) fn absolute_location(url: &Url, location: &str) -> String {
    let Ok(mut target) = url.join(location) else { return location.to_owned() };
    let _ = target.set_username("");
    let _ = target.set_password(None);
    String::from(target)
}

/// Whether `url` contains a user or a password.
pub(crate) fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Returns the key, unless the URL contains credentials: these are more specific, and a request has only one
/// `Authorization` header.
pub(crate) fn sent_key<'k>(url: &Url, key: Option<&'k str>) -> Option<&'k str> {
    key.filter(|_| !has_user(url))
}

/// Whether the key is a valid header value.
pub(crate) fn is_sendable(key: &str) -> bool {
    key.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns the URL without user, password and query, which may be secret.
pub fn shown_url(url: &Url) -> String {
    let mut shown = url.clone();
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.to_string()
}

/// Whether `url` names this machine: `localhost`, or a loopback address.
pub(crate) fn is_on_this_machine(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

/// Returns the URL of a page next to the API: `http://host/llama/v1` and `props` give `http://host/llama/props`.
pub(crate) fn server_page(base: &Url, page: &str) -> Url {
    let mut url = base.clone();
    let path = base.path().trim_end_matches('/');
    let root = match path.rsplit_once('/') {
        Some((root, last)) if is_version(last) => root,
        _ => path,
    };
    let page = format!("{}/{page}", root.trim_end_matches('/'));
    url.set_path(&page);
    url
}

/// Whether a path segment is a version: `v1`, `v1beta`.
pub(crate) fn is_version(part: &str) -> bool {
    part.starts_with('v') && part.chars().nth(1).is_some_and(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_next_to_the_api() {
        for (base, page) in [
            ("http://h:1/v1", "http://h:1/props"),
            ("http://h:1/v1/", "http://h:1/props"),
            ("http://h:1", "http://h:1/props"),
            ("http://h:1/llama/v1", "http://h:1/llama/props"),
            ("https://h/api/v1beta", "https://h/api/props"),
            ("https://h/vault", "https://h/vault/props"),
        ] {
            assert_eq!(server_page(&Url::parse(base).unwrap(), "props").as_str(), page);
        }
    }
}
