use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::spec::nearest;
use deftool_lang::syntax::quoted;
use deftool_lang::text::{Location, Spanned};

rule! {
    /// a worker with an unknown tool
    ///
    /// The worker would run without the tool. List tools in `:tools` and exit tools in `:exit-tools`.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// (defworker :name "local" :tools ["nwo"])
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// (defworker :name "local" :tools ["now"])
    /// ```
    pub(crate) UNKNOWN_WORKER_TOOL, "DT302", "unknown-worker-tool", Error
}

/// `what`: `tool` or `exit tool`. `known`: the names of that kind. `is_other`: whether the name is of the other kind.
pub(crate) fn finding(
    at: Location,
    worker: &str,
    name: &Spanned<String>,
    what: &str,
    known: &[&str],
    is_other: bool,
) -> Diagnostic {
    let name = &name.value;
    let message =
        format!("unknown {what} `{name}` in worker `{worker}`");
    let finding = Diagnostic::new(&UNKNOWN_WORKER_TOOL, at, message);
    if is_other {
        let list = if what == "tool" { ":exit-tools" } else { ":tools" };
        return finding.labelled(format!("belongs in `{list}`"));
    }
    match nearest(name, known.iter().copied()) {
        Some(near) => finding.did_you_mean(at.span, quoted(near)),
        None => finding,
    }
}
