//! Sends a request, follows redirects and reads the response.
//!
//! Scheme, host and address of each redirect are checked as if the script had requested its URL. Redirects change
//! method and body as in the Fetch standard (HTTP-redirect fetch, read 2026-11) and RFC 9110, section 15.4: 301 and 302
//! change POST to GET, 303 changes every method except HEAD to GET, 307 and 308 change nothing. A redirect to another
//! origin drops credentials.

use reqwest::header::{
    CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    LOCATION,
};
use reqwest::{Method, Response};
use url::Url;

use super::body;
use super::call_headers::IDEMPOTENCY_KEY;
use super::client::Clients;
use super::failure::{explain, script_error};
use super::grants::NetGrants;
use super::request::{Limits, Request};
use super::target::{follow, redacted};
use crate::error::HostError;

/// A response with its complete body.
pub(super) struct HttpResponse {
    pub(super) status: u16,
    /// The final URL, after redirects.
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Sends `request` within `grants` and returns the response.
///
/// # Errors
/// When a host is not allowed, or the network or the server fails. An HTTP error status is not an error.
pub(super) async fn exchange(
    clients: &Clients,
    grants: &NetGrants,
    request: Request,
) -> Result<HttpResponse, HostError> {
    let limits = request.limits;
    let first = redacted(&request.url);
    let work = follow_redirects(clients, grants, request);
    match limits.timeout {
        None => work.await,
        Some(timeout) => tokio::time::timeout(timeout, work).await.unwrap_or_else(|_| {
            Err(script_error(format!(
                "{first}: no complete response within timeout = {} s",
                timeout.as_secs_f64()
            )))
        }),
    }
}

async fn follow_redirects(
    clients: &Clients,
    grants: &NetGrants,
    request: Request,
) -> Result<HttpResponse, HostError> {
    let limits = request.limits;
    let mut next = outgoing(request);
    let mut hops = 0;
    loop {
        grants.check(next.url()).map_err(|error| note_redirect(hops, error))?;
        let url = redacted(next.url());
        // Always succeeds, because the body is not a stream.
        let again = next.try_clone();
        let client = clients.client(grants, next.url())?;
        let sent = client.execute(next).await;
        let response = sent.map_err(|error| note_redirect(hops, explain(&error, &url)))?;
        match (location(&response, limits), again) {
            (Some(location), Some(again)) => {
                hops += 1;
                if hops > limits.redirects {
                    return Err(script_error(format!(
                        "{url}: more than {} redirects; increase redirects, or receive them as responses with \
                         redirects = 0",
                        limits.redirects
                    )));
                }
                next = redirect(again, response.status().as_u16(), location.as_bytes())
                    .map_err(|reason| script_error(format!("{url}: invalid redirect: {reason}")))?;
            }
            _ => return read_response(response, limits.bytes, &url).await,
        }
    }
}

fn outgoing(request: Request) -> reqwest::Request {
    let mut outgoing = reqwest::Request::new(request.method, request.url);
    *outgoing.headers_mut() = request.headers;
    *outgoing.body_mut() = request.body.map(Into::into);
    outgoing
}

async fn read_response(
    mut response: Response,
    max_bytes: usize,
    url: &str,
) -> Result<HttpResponse, HostError> {
    let body = body::read(&mut response, max_bytes, url).await?;
    Ok(HttpResponse {
        status: response.status().as_u16(),
        url: response.url().clone(),
        headers: std::mem::take(response.headers_mut()),
        body,
    })
}

/// Adds to the message that the error occurred after a redirect.
fn note_redirect(hops: usize, error: HostError) -> HostError {
    if hops == 0 {
        return error;
    }
    HostError { message: format!("after a redirect: {}", error.message), ..error }
}

/// Returns the location of a redirect, if it should be followed.
fn location(response: &Response, limits: Limits) -> Option<HeaderValue> {
    let redirects = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    (redirects && limits.redirects > 0).then(|| response.headers().get(LOCATION).cloned()).flatten()
}

/// Returns the request for a redirect of `request` with `status`.
fn redirect(mut request: reqwest::Request, status: u16, location: &[u8]) -> Result<reqwest::Request, String> {
    let url = follow(request.url(), location)?;
    if request.url().scheme() == "https" && url.scheme() == "http" {
        return Err(format!(
            "redirect from https to http ({}); request that URL directly if this is intended",
            redacted(&url)
        ));
    }
    let to_get = match status {
        301 | 302 => request.method() == Method::POST,
        303 => request.method() != Method::GET && request.method() != Method::HEAD,
        _ => false,
    };
    if to_get {
        *request.method_mut() = Method::GET;
        *request.body_mut() = None;
        for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION] {
            request.headers_mut().remove(name);
        }
    }
    if request.url().origin() != url.origin() {
        let kept = std::mem::take(request.headers_mut());
        let mut last = None;
        for (name, value) in kept {
            // The iterator returns the name only with the first value of a header.
            last = name.or(last);
            if let Some(name) = last.as_ref().filter(|name| !is_credential(name)) {
                request.headers_mut().append(name.clone(), value);
            }
        }
    }
    *request.url_mut() = url;
    Ok(request)
}

/// Returns whether a header contains credentials, which only the original origin may receive: `authorization`, `cookie`
/// and the headers that APIs use instead (`x-api-key`, `private-token`). An idempotency key is not a credential:
/// without it, a redirected request could take effect twice.
fn is_credential(name: &HeaderName) -> bool {
    *name != IDEMPOTENCY_KEY
        && ["auth", "cookie", "token", "secret", "key"].iter().any(|part| name.as_str().contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, url: &str) -> reqwest::Request {
        let mut request = reqwest::Request::new(method.parse().unwrap(), url.parse().unwrap());
        for (name, value) in [
            ("authorization", "a"),
            ("cookie", "b"),
            ("x-api-key", "c"),
            ("x-kept", "d"),
            ("x-kept", "e"),
            ("content-type", "f"),
        ] {
            request.headers_mut().append(name, HeaderValue::from_static(value));
        }
        *request.body_mut() = Some("body".into());
        request
    }

    fn seen(request: &reqwest::Request) -> String {
        let names: Vec<&str> = request.headers().iter().map(|(name, _)| name.as_str()).collect();
        let body = if request.body().is_some() { " with body" } else { "" };
        format!("{} {}{body}: {}", request.method(), request.url(), names.join(" "))
    }

    #[test]
    fn redirects_change_method_and_body_as_in_the_fetch_standard() {
        let all = "authorization cookie x-api-key x-kept x-kept";
        for (status, method, goes_on) in [
            (301, "POST", format!("GET https://a.example/y: {all}")),
            (302, "POST", format!("GET https://a.example/y: {all}")),
            (303, "POST", format!("GET https://a.example/y: {all}")),
            (303, "PUT", format!("GET https://a.example/y: {all}")),
            (301, "PUT", format!("PUT https://a.example/y with body: {all} content-type")),
            (303, "HEAD", format!("HEAD https://a.example/y with body: {all} content-type")),
            (307, "POST", format!("POST https://a.example/y with body: {all} content-type")),
            (308, "DELETE", format!("DELETE https://a.example/y with body: {all} content-type")),
        ] {
            let next = redirect(request(method, "https://a.example/x"), status, b"/y#z").unwrap();
            assert_eq!(seen(&next), goes_on, "{status} {method}");
        }
    }

    #[test]
    fn a_redirect_to_another_origin_drops_credentials() {
        for (location, kept) in [
            ("https://a.example/y", true),
            ("https://a.example:443/y", true),
            ("https://a.example:8443/y", false),
            ("https://b.example/y", false),
            ("https://sub.a.example/y", false),
        ] {
            let next = redirect(request("PUT", "https://a.example/x"), 307, location.as_bytes()).unwrap();
            let names = if kept {
                "authorization cookie x-api-key x-kept x-kept content-type"
            } else {
                "x-kept x-kept content-type"
            };
            assert!(seen(&next).ends_with(&format!(": {names}")), "{location}: {}", seen(&next));
        }
        let up = redirect(request("PUT", "http://a.example/x"), 307, b"https://a.example/x").unwrap();
        assert!(!seen(&up).contains("authorization"));
        let down = redirect(request("PUT", "https://a.example/x"), 307, b"http://a.example/x");
        assert!(down.unwrap_err().contains("from https to http"));
    }
}
