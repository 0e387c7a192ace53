use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a key or password in a spec
    ///
    /// Specs are shared, committed and quoted in reports. deftool reads the API key from the environment variable
    /// named by `:api-key-env` and never writes it to a file.
    ///
    /// ```eld fails
    /// (defworker :name "hosted" :endpoint "https://me:secret@llm.example.org/v1")
    /// ```
    ///
    /// ```eld repaired
    /// (defworker :name "hosted" :endpoint "https://llm.example.org/v1" :api-key-env "LLM_KEY")
    /// ```
    pub(crate) SECRET_IN_FILE, "DT308", "secret-in-file", Warning
}

/// Keys with secret values.
const KEYS: [&str; 8] =
    ["api-key", "api_key", "apikey", "key", "token", "password", "secret", "authorization"];

/// Whether a key with this name contains a secret.
pub(in crate::spec) fn is_secret(key: &str) -> bool {
    KEYS.iter().any(|known| known.eq_ignore_ascii_case(key))
}

/// Reports a user name and password, or a key in the query, in an endpoint. The message does not repeat the secret.
pub(in crate::spec) fn check(at: Location, endpoint: &str) -> Option<Diagnostic> {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or("");
    let mut query = rest.split_once('?').map_or("", |(_, query)| query).split('&');
    if !host.contains('@') && !query.any(|pair| is_secret(pair.split('=').next().unwrap_or(""))) {
        return None;
    }
    Some(note(Diagnostic::new(&SECRET_IN_FILE, at, "`:endpoint` contains a key or password")))
}

/// Reports a worker key that is meant for a secret.
pub(in crate::spec) fn finding(at: Location, key: &str) -> Diagnostic {
    note(Diagnostic::new(&SECRET_IN_FILE, at, format!("`:{key}` stores a secret in the file")))
}

fn note(finding: Diagnostic) -> Diagnostic {
    finding.note("export it as an environment variable and write `:api-key-env \"MY_KEY\"`")
}
