//! The HTTP client: its construction, and the causes of its errors.

use std::io::ErrorKind;
use std::time::Duration;

use deftool_script::client_builder;
use reqwest::header::CONTENT_ENCODING;
use reqwest::{Client, Response, Url};

use super::url::is_on_this_machine;

/// Maximum idle time of a connection. Common servers close idle connections after 5 s, and a request that is sent at
/// that moment is lost.
const MAX_IDLE: Duration = Duration::from_secs(3);

/// Advice for a TLS error.
pub(super) const TLS_ADVICE: &str = "use http:// if the server has no TLS; otherwise add its certificate to the trusted \
                                     certificates of this machine";

/// Creates a client for `url`. It follows no redirects (a redirected POST indicates a wrong endpoint) and uses no proxy
/// for this machine.
///
/// # Errors
/// When TLS cannot be set up, as a message.
pub fn http_client(url: &Url, connect: Duration) -> Result<Client, String> {
    let mut builder = client_builder()
        .connect_timeout(connect)
        .pool_idle_timeout(MAX_IDLE)
        .redirect(reqwest::redirect::Policy::none());
    if is_on_this_machine(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // Certificates are not needed without TLS, and the machine may have none.
        builder = builder.tls_certs_only(std::iter::empty());
    }
    let advice = if url.scheme() == "https" { "; are the system's CA certificates installed?" } else { "" };
    builder.build().map_err(|error| format!("cannot set up HTTP: {}{advice}", root_cause(&error)))
}

/// Returns the encoding of the body of `response` that the HTTP library does not decode.
pub(super) fn unknown_encoding(response: &Response) -> Option<&str> {
    let encodings = response.headers().get_all(CONTENT_ENCODING).iter();
    let mut names = encodings.filter_map(|value| value.to_str().ok());
    names.find(|name| !name.trim().is_empty() && !name.trim().eq_ignore_ascii_case("identity"))
}

/// Whether a compressed body is damaged.
pub(super) fn is_undecodable(error: &reqwest::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return matches!(io.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData);
        }
        source = error.source();
    }
    false
}

/// Whether the connection was refused.
pub(super) fn is_refused(error: &reqwest::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && io.kind() == std::io::ErrorKind::ConnectionRefused
        {
            return true;
        }
        source = error.source();
    }
    false
}

/// Returns the text of the innermost error. The outer errors add no information.
pub fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string().replace(['\n', '\r'], " ")
}

/// Whether the TLS handshake failed.
pub(super) fn is_of_tls(error: &reqwest::Error) -> bool {
    matches!(failing_layer(error), Some(Layer::Tls))
}

/// A layer below HTTP.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    Dns,
    Tls,
}

/// Returns the layer below HTTP that failed, based on the error texts: the error types are private.
pub(super) fn failing_layer(error: &reqwest::Error) -> Option<Layer> {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        let text = error.to_string();
        if text.contains("dns error") {
            return Some(Layer::Dns);
        }
        if ["certificate", "tls", "TLS", "InvalidContentType", "HandshakeFailure"]
            .iter()
            .any(|word| text.contains(word))
        {
            return Some(Layer::Tls);
        }
        source = error.source();
    }
    None
}
