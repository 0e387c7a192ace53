use crate::diagnostic::{Diagnostic, rule};
use crate::spec::reference::Plist;
use crate::syntax::quoted;
use crate::text::Location;

rule! {
    /// a form without a required key
    ///
    /// The model calls a tool by its name, and the name of an argument is its JSON key. Every API requires both.
    ///
    /// ```eld fails
    /// (deftool :description "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// The `:command` of a `:server` is the program that the worker starts, with its arguments. The worker chooses a free
    /// port at each start and substitutes it for `{port}` in the command and its environment variables. If neither uses
    /// `{port}`, `:port N` must specify the port on which the server listens.
    ///
    /// ```eld fails
    /// (defworker :name "local" :server (:command ["llama-server" "-m" "model.gguf"]))
    /// ```
    ///
    /// ```eld repaired
    /// (defworker :name "local" :server (:command ["llama-server" "-m" "model.gguf" "--port" "{port}"]))
    /// ```
    pub(crate) MISSING_KEY, "DT109", "missing-key", Error
}

pub(in crate::spec) fn finding(at: Location, plist: Plist, key: &str) -> Diagnostic {
    let finding = Diagnostic::new(&MISSING_KEY, at, format!("missing `:{key}` for {}", plist.describe()));
    match plist {
        Plist::Tool => finding.note("add `:name \"…\"`, up to 64 of A-Z a-z 0-9 _ -"),
        Plist::Server => finding.note("write `:command [\"llama-server\" \"--port\" \"{port}\"]`"),
        Plist::Ask => finding.note(
            "write `:call (:argument VALUE …)` for a call with these arguments, `:call t` for any call of the tool, or \
             `:call nil` for no call of it",
        ),
        Plist::ProjectAsk if key == "calls" => {
            finding.note("write `:calls [(TOOL :call (:argument VALUE …)) …]`, or `:call none` for no call at all")
        }
        Plist::ProjectAsk => finding.note("write the message of the user: `:prompt \"…\"`"),
        Plist::ExpectedCall => {
            finding.note("write `(TOOL :call (:argument VALUE …))`, or `(TOOL :call t)` for any arguments")
        }
        Plist::PastCall => finding.note("write `(TOOL :call (:argument VALUE …) :result VALUE)`"),
        _ => finding,
    }
}

/// Reports the unknown key `found`, which was probably meant to be the missing `key`.
pub(in crate::spec) fn misspelt(at: Location, plist: Plist, key: &str, found: &str) -> Diagnostic {
    let message = format!("missing `:{key}` for {}, found `:{found}`", plist.describe());
    Diagnostic::new(&MISSING_KEY, at, message).did_you_mean(at.span, format!(":{key}"))
}

/// Reports a name without its key; `word` is the first element of the form.
pub(in crate::spec) fn name(at: Location, word: &str) -> Diagnostic {
    let name = quoted(word);
    Diagnostic::new(&MISSING_KEY, at, format!("missing `:name` for a tool, found {name} without the key"))
        .note("a tool is a plist: `(deftool :name \"…\" :description \"…\" :args (…))`")
        .maybe_fixed_by(format!("write `:name {name}`"), at.span, format!(":name {name}"))
}

/// Reports a server whose port is unknown.
pub(in crate::spec) fn port(at: Location) -> Diagnostic {
    let message = "missing port: use `{port}` in `:command` or `:env`, or set `:port`";
    Diagnostic::new(&MISSING_KEY, at, message)
}
