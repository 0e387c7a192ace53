use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an endpoint that includes an API path
    ///
    /// The endpoint is a base URL. Paths such as `/chat/completions` and `/models` are appended to it. If it already
    /// includes such a path, every request fails with 404.
    ///
    /// ```eld fails
    /// (defworker :name "local" :endpoint "http://127.0.0.1:8080/v1/chat/completions")
    /// ```
    ///
    /// ```eld repaired
    /// (defworker :name "local" :endpoint "http://127.0.0.1:8080/v1")
    /// ```
    pub(crate) ENDPOINT_SUFFIX, "DT307", "endpoint-suffix", Warning
}

const SUFFIXES: [&str; 5] = ["/chat/completions", "/completions", "/responses", "/messages", "/models"];

pub(in crate::spec) fn check(at: Location, endpoint: &str) -> Option<Diagnostic> {
    let path = endpoint.trim_end_matches('/');
    let (base, suffix) = SUFFIXES.iter().find_map(|suffix| Some((path.strip_suffix(suffix)?, suffix)))?;
    let message = format!("`:endpoint` must be the base URL, without `{suffix}`");
    let finding = Diagnostic::new(&ENDPOINT_SUFFIX, at, message);
    let written = super::quoted(base);
    Some(finding.fixed_by(format!("write {written}"), at.span, written))
}
