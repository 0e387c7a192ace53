use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a :server with an unknown port
    ///
    /// The worker chooses a free port at each start and substitutes it for `{port}` in the command and its environment
    /// variables. If the command does not use `{port}`, `:port N` must specify the port on which the server listens.
    ///
    /// ```eld fails
    /// (defworker :name "local" :server (:command ["llama-server" "-m" "model.gguf"]))
    /// ```
    ///
    /// ```eld repaired
    /// (defworker :name "local" :server (:command ["llama-server" "-m" "model.gguf" "--port" "{port}"]))
    /// ```
    pub(crate) SERVER_WITHOUT_PORT, "DT313", "server-without-port", Error
}

/// `at` is the command.
pub(in crate::spec) fn finding(at: Location) -> Diagnostic {
    let message = "missing port: use `{port}` in `:command` or `:env`, or set `:port`";
    Diagnostic::new(&SERVER_WITHOUT_PORT, at, message)
}
