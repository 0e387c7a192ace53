use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// an :endpoint together with a :server
    ///
    /// A worker that starts its own server sends all requests to that server, so the endpoint has no effect. With
    /// `--endpoint` on the command line, the server is not started and the given endpoint is used.
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

/// `at` is the endpoint.
pub(in crate::spec) fn finding(at: Location, server: Span) -> Diagnostic {
    let message = "`:endpoint` has no effect together with `:server`";
    Diagnostic::new(&SERVER_AND_ENDPOINT, at, message).with_label_at(server, "the worker uses this server")
}
