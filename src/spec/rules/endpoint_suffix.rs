use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an endpoint that names a path of the API
    ///
    /// The endpoint is the base of all paths; `/chat/completions` and `/models` are added to it. With one of them in it every
    /// request ends in 404.
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
    let message = format!("`:endpoint` is the base URL; `{suffix}` is added to it");
    let finding = Diagnostic::new(&ENDPOINT_SUFFIX, at, message);
    let written = super::quoted(base);
    Some(finding.fixed_by(format!("write {written}"), at.span, written))
}
