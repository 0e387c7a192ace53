use crate::diagnostic::{Diagnostic, rule};
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// an unknown key of a worker
    ///
    /// The key is ignored. Request parameters such as a temperature belong in `:params`.
    ///
    /// ```eld fails
    /// (defworker :name "local" :tool-bugdet 3)
    /// ```
    ///
    /// ```eld repaired
    /// (defworker :name "local" :tool-budget 3)
    /// ```
    pub(crate) UNKNOWN_WORKER_KEY, "DT301", "unknown-worker-key", Warning
}

/// Names of the keys in other programs.
const ALIASES: [(&str, &str); 9] = [
    ("url", "endpoint"),
    ("base-url", "endpoint"),
    ("host", "endpoint"),
    ("system-prompt", "system"),
    ("prompt", "system"),
    ("budget", "tool-budget"),
    ("timeout", "total"),
    ("concurrency", "slots"),
    ("key-env", "api-key-env"),
];

/// Request parameters that are often written on the worker.
const PARAMS: [&str; 12] = [
    "temperature", "max-tokens", "max_tokens", "top-p", "top_p", "top-k", "seed", "stop", "tool-choice",
    "frequency-penalty", "presence-penalty", "reasoning-effort",
];

pub(in crate::spec) fn finding(at: Location, key: &str, known: &[&str]) -> Diagnostic {
    let finding = Diagnostic::new(&UNKNOWN_WORKER_KEY, at, format!("unknown key `:{key}` for a worker"));
    if PARAMS.contains(&key) {
        return finding.note(format!("write it as a request parameter: `:params (:{key} …)`"));
    }
    let alias = ALIASES.iter().find(|(alias, _)| *alias == key).map(|(_, known)| *known);
    match alias.or_else(|| nearest(key, known.iter().copied())) {
        Some(near) => finding.did_you_mean(at.span, format!(":{near}")),
        None => finding,
    }
}
