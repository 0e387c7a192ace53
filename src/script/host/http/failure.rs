//! What went wrong on the wire, in words for a script's author.

use std::error::Error;
use std::io;

use super::client::CONNECT;
use crate::script::error::{HostError, clean};
use crate::tool::ToolErrorKind;

/// Longest cause that is told, in characters.
const MAX_CAUSE: usize = 300;

/// A failure of the world or of a server, which a script may catch.
pub(super) fn failed(message: impl Into<String>) -> HostError {
    HostError { kind: ToolErrorKind::Script, message: message.into() }
}

/// Why the request to `url`, as messages name it, has no answer.
pub(super) fn explain(error: &reqwest::Error, url: &str) -> HostError {
    if let Some(own) = find::<HostError>(error) {
        return match own.kind {
            ToolErrorKind::Permission => own.clone(),
            _ => failed(format!("{url}: {}", own.message)),
        };
    }
    let kind = find::<io::Error>(error).map(io::Error::kind);
    let cause = root_cause(error);
    failed(match kind {
        Some(io::ErrorKind::ConnectionRefused) => {
            format!("{url}: connection refused; is the server running there?")
        }
        _ if error.is_timeout() => {
            format!("{url}: no connection within {} s; check the address and the network", CONNECT.as_secs())
        }
        // A connection stands, and what comes over it is not what TLS wants.
        Some(io::ErrorKind::Other | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
            if error.is_connect() && url.starts_with("https:") =>
        {
            let advice = if cause.contains("certificate") {
                "the server must show a certificate that this machine trusts"
            } else {
                "does the server speak https there?"
            };
            format!("{url}: TLS: {cause}; {advice}")
        }
        _ if error.is_connect() => format!("{url}: no connection: {cause}"),
        _ => format!("{url}: the connection broke: {cause}"),
    })
}

/// The innermost error, cleaned: the outer ones say no more than that there was one, and name the whole URL.
pub(super) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    clean(&cause.to_string().replace(['\n', '\r'], " "), MAX_CAUSE)
}

fn find<T: Error + 'static>(error: &reqwest::Error) -> Option<&T> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        source = error.source();
    }
    None
}
