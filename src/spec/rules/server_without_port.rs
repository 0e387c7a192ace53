use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a :server that nobody could find
    ///
    /// The worker chooses a free port at each start and writes it where `{port}` stands in the command or a variable. A command that
    /// is not told the port must be known to listen on another: `:port N` says which.
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

/// `at`: the command.
pub(in crate::spec) fn finding(at: Location) -> Diagnostic {
    let message = "neither this command nor `:env` holds `{port}`, and there is no `:port`: the worker cannot know where \
                   the server listens";
    Diagnostic::new(&SERVER_WITHOUT_PORT, at, message)
}
