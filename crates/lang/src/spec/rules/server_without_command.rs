use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a :server without a :command
    ///
    /// The command is the program that the worker starts, with its arguments, as a vector of strings. Without it there
    /// is no server.
    ///
    /// ```eld fails
    /// (defworker :name "local" :server (:port 8080))
    /// ```
    ///
    /// ```eld repaired
    /// (defworker :name "local" :server (:command ["llama-server" "-m" "model.gguf" "--port" "{port}"]))
    /// ```
    pub(crate) SERVER_WITHOUT_COMMAND, "DT312", "server-without-command", Error
}

pub(in crate::spec) fn finding(at: Location) -> Diagnostic {
    let message = "missing `:command` for `:server`, such as `[\"llama-server\" \"--port\" \"{port}\"]`";
    Diagnostic::new(&SERVER_WITHOUT_COMMAND, at, message)
}

/// Reports a misspelt `:command`; `at` is the key.
pub(in crate::spec) fn misspelt(at: Location, key: &str) -> Diagnostic {
    let message = format!("unknown key `:{key}` for `:server`; missing `:command`");
    Diagnostic::new(&SERVER_WITHOUT_COMMAND, at, message).fixed_by("write `:command`", at.span, ":command")
}
