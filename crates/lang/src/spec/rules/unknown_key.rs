use crate::diagnostic::{Diagnostic, Severity, rule};
use crate::spec::reference::{self, Plist};
use crate::spec::{keywords, nearest};
use crate::text::Location;

rule! {
    /// an unknown key
    ///
    /// Unknown keys are ignored, so the intended setting has no effect. Some keys differ from those of other programs:
    /// `:parameters` is `:args` here, and request parameters of a worker such as a temperature belong in `:params`.
    ///
    /// ```eld fails
    /// (deftool :name "now" :desciption "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// An unknown key of an argument or schema is sent unchanged. Most APIs ignore it; Gemini, and OpenAI in strict mode,
    /// reject it. JSON Schema keywords are case-sensitive and use camel case.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :min_length 1)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :minLength 1)))
    /// ```
    ///
    /// An unknown permission is an error: a script may use only what `:allow` lists, and it fails when it is called.
    ///
    /// ```eld fails
    /// (deftool :name "note" :description "Read a note." :allow (:reed ["notes/"]))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "note" :description "Read a note." :allow (:read ["notes/"]))
    /// ```
    pub(crate) UNKNOWN_KEY, "DT108", "unknown-key", Warning
}

/// Names of the keys in other programs. An alias counts where its key is known.
const ALIASES: [(&str, &str); 47] = [
    ("doc", "description"),
    ("docstring", "description"),
    ("documentation", "description"),
    ("summary", "description"),
    ("desc", "description"),
    ("help", "description"),
    ("parameters", "args"),
    ("params", "args"),
    ("arguments", "args"),
    ("argument", "args"),
    ("input-schema", "args"),
    ("input_schema", "args"),
    ("inputSchema", "args"),
    ("properties", "args"),
    ("fn", "function"),
    ("func", "function"),
    ("lambda", "function"),
    ("handler", "function"),
    ("id", "name"),
    ("title", "name"),
    ("permissions", "allow"),
    ("permission", "allow"),
    ("file", "script"),
    ("group", "category"),
    ("examples", "accepts"),
    ("url", "endpoint"),
    ("base-url", "endpoint"),
    ("host", "endpoint"),
    ("system-prompt", "system"),
    ("prompt", "system"),
    ("budget", "tool-budget"),
    ("timeout", "total"),
    ("concurrency", "slots"),
    ("key-env", "api-key-env"),
    ("choices", "enum"),
    ("values", "enum"),
    ("options", "enum"),
    ("one-of", "enum"),
    ("min", "minimum"),
    ("max", "maximum"),
    ("regex", "pattern"),
    ("regexp", "pattern"),
    ("element", "items"),
    ("elements", "items"),
    ("of", "items"),
    ("fields", "properties"),
    ("example", "examples"),
];

/// Request parameters that are often written on the worker.
const PARAMS: [&str; 12] = [
    "temperature", "max-tokens", "max_tokens", "top-p", "top_p", "top-k", "seed", "stop", "tool-choice",
    "frequency-penalty", "presence-penalty", "reasoning-effort",
];

/// Up to this number, all keys are listed where none is similar.
const FEW: usize = 10;

/// Reports a key of `plist`.
pub(in crate::spec) fn finding(at: Location, plist: Plist, key: &str) -> Diagnostic {
    let known = reference::keys(plist);
    if plist == Plist::Argument && let Some(known) = keywords::in_other_case(key) {
        let message = format!("unknown keyword `:{key}`; the correct spelling is `:{known}`");
        return Diagnostic::new(&UNKNOWN_KEY, at, message)
            .note(format!("it is sent as the JSON key \"{key}\", which APIs do not support"))
            .fixed_by(format!("write `:{known}`"), at.span, format!(":{known}"));
    }
    let message = match plist {
        Plist::Argument => {
            format!("unknown key `:{key}`, neither an argument key nor a JSON Schema keyword")
        }
        Plist::Permissions => {
            let mut finding = among(at, "permission", key, known.iter().map(|key| key.name));
            finding.severity = Severity::Error;
            return finding;
        }
        _ => format!("unknown key `:{key}` for {}", plist.describe()),
    };
    let finding = Diagnostic::new(&UNKNOWN_KEY, at, message);
    match (plist, meant(plist, key)) {
        (Plist::Tool | Plist::Exit, _) if matches!(key, "optional" | "required" | "type") => {
            finding.note("it belongs in one of the plists of `:args`")
        }
        (Plist::Worker, _) if PARAMS.contains(&key) => {
            finding.note(format!("write it as a request parameter: `:params (:{key} …)`"))
        }
        (Plist::Mcp, _) if key == "args" => finding.note("write arguments in `:command`, after the program"),
        (_, Some(near)) => finding.did_you_mean(at.span, format!(":{near}")),
        (Plist::Argument, None) => finding,
        (_, None) if known.len() <= FEW => {
            let known: Vec<String> = known.iter().map(|key| format!(":{}", key.name)).collect();
            finding.note(format!("keys: {}", known.join(" ")))
        }
        (_, None) => finding.note("the key is ignored"),
    }
}

/// Reports a key that should be one of the names `known`, such as a `permission` or a `target`.
pub fn among<'k>(
    at: Location,
    what: &str,
    key: &str,
    known: impl Iterator<Item = &'k str> + Clone,
) -> Diagnostic {
    let finding = Diagnostic::new(&UNKNOWN_KEY, at, format!("unknown {what} `:{key}`"));
    match nearest(key, known.clone()) {
        Some(near) => finding.did_you_mean(at.span, format!(":{near}")),
        None => finding.note(format!("available {what}s: {}", known.collect::<Vec<_>>().join(", "))),
    }
}

/// Returns the key that the unknown `key` of `plist` was probably meant to be.
pub(in crate::spec) fn meant(plist: Plist, key: &str) -> Option<&'static str> {
    let is_argument = plist == Plist::Argument;
    // An argument without a name has its own finding.
    let known = reference::keys(plist).iter().map(|key| key.name).filter(|name| !is_argument || *name != "name");
    let in_other_case = if is_argument { keywords::in_other_case(key) } else { None };
    let is_meant = |name: &&str| ALIASES.contains(&(key, name));
    // Abbreviations such as `:descr`.
    let is_abbreviated = |name: &&str| key.len() >= 4 && name.starts_with(key);
    in_other_case
        .or_else(|| known.clone().find(is_meant))
        .or_else(|| nearest(key, known.clone()))
        .or_else(|| known.clone().find(is_abbreviated))
}
