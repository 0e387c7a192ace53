use crate::diagnostic::{Diagnostic, rule};
use crate::spec::nearest;
use crate::syntax::quoted;
use crate::text::{Location, Spanned};

rule! {
    /// a worker that names a tool the project does not have
    ///
    /// The worker would run without it, and the model never learn of it. Tools stand in `:tools`, exit tools in `:exit-tools`.
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

/// `what`: `tool` or `exit tool`; `known`: the names of that sort; `is_other`: it is one of the other sort.
pub(in crate::project) fn finding(
    at: Location,
    worker: &str,
    name: &Spanned<String>,
    what: &str,
    known: &[&str],
    is_other: bool,
) -> Diagnostic {
    let name = &name.value;
    let message =
        format!("worker `{worker}` names the {what} `{name}`, and the project has no {what} of that name");
    let finding = Diagnostic::new(&UNKNOWN_WORKER_TOOL, at, message);
    if is_other {
        let list = if what == "tool" { ":exit-tools" } else { ":tools" };
        return finding.labelled(format!("it stands in `{list}`"));
    }
    match nearest(name, known.iter().copied()) {
        Some(near) => finding.meant(at.span, quoted(near)),
        None => finding,
    }
}
