use crate::diagnostic::{Diagnostic, rule};
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// a key that workers do not have
    ///
    /// It is dropped. What belongs to the model's request, as a temperature, stands in `:params`.
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

/// What other programs call the keys.
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

/// Members of a request body that people write on the worker.
const PARAMS: [&str; 12] = [
    "temperature", "max-tokens", "max_tokens", "top-p", "top_p", "top-k", "seed", "stop", "tool-choice",
    "frequency-penalty", "presence-penalty", "reasoning-effort",
];

pub(in crate::spec) fn finding(at: Location, key: &str, known: &[&str]) -> Diagnostic {
    let finding = Diagnostic::new(&UNKNOWN_WORKER_KEY, at, format!("`:{key}` is no key of a worker"));
    if PARAMS.contains(&key) {
        return finding.note(format!("it belongs to the request: `:params (:{key} …)`"));
    }
    let alias = ALIASES.iter().find(|(alias, _)| *alias == key).map(|(_, known)| *known);
    match alias.or_else(|| nearest(key, known.iter().copied())) {
        Some(near) => finding.meant(at.span, format!(":{near}")),
        None => finding,
    }
}
