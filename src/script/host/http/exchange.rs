//! A request and its answer, redirects included.
//!
//! Each hop is judged as if the script had asked for it: scheme, host, address. What a redirect does to method and body
//! follows the Fetch standard (HTTP-redirect fetch, read 2026-11) and RFC 9110, section 15.4: 301 and 302 make a POST a
//! GET, 303 makes everything but HEAD a GET, 307 and 308 change nothing. Across origins credentials are left behind.

use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, HeaderMap,
    HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Method, Response};
use url::Url;

use super::body;
use super::client::Clients;
use super::failure::{explain, failed};
use super::grants::Grants;
use super::request::{Limits, Request};
use super::target::{follow, shown};
use crate::script::error::HostError;

/// What came back.
pub(super) struct Answer {
    pub(super) status: u16,
    /// Where it came from, after redirects.
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Sends `request` as far as `grants` allow.
///
/// # Errors
/// What is denied, and what the network and the server do wrong; a status is no error.
pub(super) async fn exchange(
    clients: &Clients,
    grants: &Grants,
    request: Request,
) -> Result<Answer, HostError> {
    let limits = request.limits;
    let first = shown(&request.url);
    let work = hop_by_hop(clients, grants, request);
    match limits.timeout {
        None => work.await,
        Some(timeout) => tokio::time::timeout(timeout, work).await.unwrap_or_else(|_| {
            Err(failed(format!("{first}: no whole answer within timeout = {} s", timeout.as_secs_f64())))
        }),
    }
}

async fn hop_by_hop(clients: &Clients, grants: &Grants, request: Request) -> Result<Answer, HostError> {
    let limits = request.limits;
    let mut next = outgoing(request);
    let mut hops = 0;
    loop {
        grants.check(next.url()).map_err(|error| redirected(hops, error))?;
        let url = shown(next.url());
        // A body of bytes can always be had again.
        let again = next.try_clone();
        let client = clients.client(grants, next.url())?;
        let sent = client.execute(next).await;
        let response = sent.map_err(|error| redirected(hops, explain(&error, &url)))?;
        match (location(&response, limits), again) {
            (Some(location), Some(again)) => {
                hops += 1;
                if hops > limits.redirects {
                    return Err(failed(format!(
                        "{url}: more than {} redirects; allow more with redirects = …, or take them as answers with \
                         redirects = 0",
                        limits.redirects
                    )));
                }
                next = redirect(again, response.status().as_u16(), location.as_bytes())
                    .map_err(|reason| failed(format!("{url} redirects, but {reason}")))?;
            }
            _ => return answer(response, limits.bytes, &url).await,
        }
    }
}

fn outgoing(request: Request) -> reqwest::Request {
    let mut outgoing = reqwest::Request::new(request.method, request.url);
    *outgoing.headers_mut() = request.headers;
    let accepted = HeaderValue::from_static(body::ACCEPTED);
    outgoing.headers_mut().entry(ACCEPT_ENCODING).or_insert(accepted);
    *outgoing.body_mut() = request.body.map(Into::into);
    outgoing
}

async fn answer(mut response: Response, most: usize, url: &str) -> Result<Answer, HostError> {
    let body = body::read(&mut response, most, url).await?;
    Ok(Answer {
        status: response.status().as_u16(),
        url: response.url().clone(),
        headers: std::mem::take(response.headers_mut()),
        body,
    })
}

/// A denial says on which way it was met.
fn redirected(hops: usize, error: HostError) -> HostError {
    if hops == 0 {
        return error;
    }
    HostError { message: format!("after a redirect: {}", error.message), ..error }
}

/// Where an answer that redirects leads, if it is to be followed.
fn location(response: &Response, limits: Limits) -> Option<HeaderValue> {
    let redirects = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    (redirects && limits.redirects > 0).then(|| response.headers().get(LOCATION).cloned()).flatten()
}

/// `request` as it goes on after an answer of `status`.
fn redirect(mut request: reqwest::Request, status: u16, location: &[u8]) -> Result<reqwest::Request, String> {
    let url = follow(request.url(), location)?;
    if request.url().scheme() == "https" && url.scheme() == "http" {
        return Err(format!(
            "from https to http ({}), which is refused; ask for that URL itself if it is meant",
            shown(&url)
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
            // A further value of a header comes without its name.
            last = name.or(last);
            if let Some(name) = last.as_ref().filter(|name| !is_credential(name)) {
                request.headers_mut().append(name.clone(), value);
            }
        }
    }
    *request.url_mut() = url;
    Ok(request)
}

/// Whether a header is for the origin that the script named, and for no other: `authorization` and `cookie`, and what APIs
/// use in their place (`x-api-key`, `private-token`).
fn is_credential(name: &HeaderName) -> bool {
    ["auth", "cookie", "token", "secret", "key"].iter().any(|part| name.as_str().contains(part))
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
    fn redirects_change_what_the_standard_says() {
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
    fn credentials_stay_with_their_origin() {
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
