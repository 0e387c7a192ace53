use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// an :endpoint beside a :server
    ///
    /// A worker that starts its own server sends its requests there and nowhere else, so the endpoint has no effect.
    /// `--endpoint` on the command line does: then the server is not started.
    ///
    /// ```eld fails
    /// (defworker :name "local" :endpoint "http://127.0.0.1:8080/v1"
    ///  :server (:command ["llama-server" "-m" "model.gguf" "--port" "{port}"]))
    /// ```
    ///
    /// ```eld repaired
    /// (defworker :name "local"
    ///  :server (:command ["llama-server" "-m" "model.gguf" "--port" "{port}"]))
    /// ```
    pub(crate) SERVER_AND_ENDPOINT, "DT314", "server-and-endpoint", Warning
}

/// `at`: the endpoint.
pub(in crate::spec) fn finding(at: Location, server: Span) -> Diagnostic {
    let message = "`:endpoint` has no effect beside `:server`, which the worker starts and talks to";
    Diagnostic::new(&SERVER_AND_ENDPOINT, at, message).and_at(server, "started here")
}
