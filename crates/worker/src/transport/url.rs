//! URLs of a model server.

use deftool_chat::Api;
use reqwest::header::HeaderValue;
use reqwest::{RequestBuilder, Url};

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

/// The host of Anthropic's API.
const ANTHROPIC_HOST: &str = "api.anthropic.com";

/// The version of the Messages API that requests are written for.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Whether `url` is of Anthropic's API.
fn is_anthropic(url: &Url) -> bool {
    url.host_str() == Some(ANTHROPIC_HOST)
}

/// Adds the key and the version of the Messages API to a request. Anthropic takes the key as `x-api-key`. Other servers
/// of this API document one of two headers, so they get both. `api`: `None` for pages that are not of one API.
pub(super) fn with_credentials(
    mut request: RequestBuilder,
    url: &Url,
    key: Option<&str>,
    api: Option<Api>,
) -> RequestBuilder {
    let is_anthropic = is_anthropic(url);
    let is_messages = api.map_or(is_anthropic, |api| api == Api::Messages);
    if is_messages {
        request = request.header("anthropic-version", ANTHROPIC_VERSION);
    }
    let Some(key) = key else { return request };
    if is_messages && let Ok(mut value) = HeaderValue::from_str(key) {
        value.set_sensitive(true);
        request = request.header("x-api-key", value);
    }
    if is_messages && is_anthropic { request } else { request.bearer_auth(key) }
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
    use std::time::Duration;

    use super::super::client::http_client;
    use super::*;

    #[test]
    fn the_key_is_sent_in_the_headers_of_the_api() {
        let base = Url::parse("http://h").unwrap();
        let client = http_client(&base, Duration::from_secs(1)).unwrap();
        for (url, api, expected) in [
            ("https://api.anthropic.com/v1/messages", Some(Api::Messages), "anthropic-version x-api-key"),
            ("https://api.anthropic.com/v1/models", None, "anthropic-version x-api-key"),
            ("https://api.anthropic.com/v1/chat/completions", Some(Api::ChatCompletions), "authorization"),
            ("http://h/v1/messages", Some(Api::Messages), "anthropic-version authorization x-api-key"),
            ("http://h/v1/models", None, "authorization"),
            ("http://h/v1/responses", Some(Api::Responses), "authorization"),
        ] {
            let url = Url::parse(url).unwrap();
            let headers_with = |key| {
                let request = with_credentials(client.get(url.clone()), &url, key, api).build().unwrap();
                let mut names: Vec<String> = request.headers().keys().map(ToString::to_string).collect();
                names.sort();
                names.join(" ")
            };
            assert_eq!(headers_with(Some("sk-1")), expected, "{url}");
            let version = expected.split(' ').find(|name| *name == "anthropic-version").unwrap_or_default();
            assert_eq!(headers_with(None), version, "{url}");
        }
    }

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
