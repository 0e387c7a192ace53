//! Converts network errors to messages for script authors.

use std::error::Error;
use std::io;

use deftool_lang::tool::ToolErrorKind;

use super::request::CONNECT;
use crate::error::{HostError, clean};

/// Maximum length of a cause in a message, in characters.
const MAX_CAUSE: usize = 300;

/// Creates an error of the network or a server, which a script can catch.
pub(super) fn script_error(message: impl Into<String>) -> HostError {
    HostError { kind: ToolErrorKind::Script, message: message.into() }
}

/// Converts an error of a request. Messages name `url`.
pub(super) fn explain(error: &reqwest::Error, url: &str) -> HostError {
    if let Some(own) = find::<HostError>(error) {
        return match own.kind {
            ToolErrorKind::Permission => own.clone(),
            _ => script_error(format!("{url}: {}", own.message)),
        };
    }
    let kind = find::<io::Error>(error).map(io::Error::kind);
    let cause = root_cause(error);
    script_error(match kind {
        Some(io::ErrorKind::ConnectionRefused) => {
            format!("{url}: connection refused; check that the server is running")
        }
        _ if error.is_timeout() => {
            format!("{url}: no connection within {} s; check the address and the network", CONNECT.as_secs())
        }
        // The connection is established, but the TLS handshake fails.
        Some(io::ErrorKind::Other | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
            if error.is_connect() && url.starts_with("https:") =>
        {
            let advice = if cause.contains("certificate") {
                "check that this machine trusts the server's certificate"
            } else {
                "check that the server supports https"
            };
            format!("{url}: TLS: {cause}; {advice}")
        }
        _ if error.is_connect() => format!("{url}: cannot connect: {cause}"),
        _ => format!("{url}: request failed: {cause}"),
    })
}

/// Returns the innermost error, without control characters. The outer errors add no information and contain the full
/// URL.
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
