use crate::diagnostic::{Diagnostic, rule};
use crate::spec::HostGrant;
use crate::text::{Location, Spanned};

rule! {
    /// a permission that grants nothing
    ///
    /// Paths are relative to the project and used as written; there is no shell to expand `~` or `$HOME`. `:net` takes
    /// hosts with or without a port (`api.example.org`, `api.example.org:8443`, `*.example.org`, `192.168.1.5`), but no
    /// URLs or address ranges. `:run` takes programs without arguments, `:env` names without a dollar sign. Any other
    /// value does not grant the intended permission.
    ///
    /// ```eld fails
    /// (deftool :name "note" :description "Read a note." :allow (:read ["~/notes/"]))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "note" :description "Read a note." :allow (:read ["/home/me/notes/"]))
    /// ```
    pub(crate) USELESS_GRANT, "DT117", "useless-grant", Warning
}

/// Checks `grant`, one of the values of `key`.
pub(in crate::spec) fn check(at: Location, key: &str, grant: &Spanned<String>) -> Option<Diagnostic> {
    let text = grant.value.as_str();
    let finding = |message: String| Some(Diagnostic::new(&USELESS_GRANT, at, message));
    let finding_with_fix = |message: String, name: &str| {
        let written = super::quoted(name);
        Some(finding(message)?.maybe_fixed_by(format!("write {written}"), at.span, written))
    };
    if text.trim().is_empty() {
        return finding(format!("empty string in `:{key}`"));
    }
    match key {
        "read" | "write" if text.starts_with('~') => {
            finding(format!("`~` is not expanded; \"{text}\" is a name inside the project"))
        }
        "read" | "write" | "run" if text.contains('$') => {
            finding(format!("variables are not expanded; \"{text}\" is used as written"))
        }
        "net" => {
            let refused = HostGrant::parse(text).err()?;
            match refused.instead {
                Some(host) => finding_with_fix(refused.reason, &host),
                None => finding(refused.reason),
            }
        }
        "run" if text.contains(char::is_whitespace) && !text.contains('/') => {
            let program = text.split_whitespace().next().unwrap_or("");
            finding_with_fix(format!("`:run` takes programs without arguments, found \"{text}\""), program)
        }
        "env" if text.starts_with('$') || text.contains('=') => {
            let name = text.trim_start_matches('$').split('=').next().unwrap_or("");
            let name = name.trim_matches(['{', '}']);
            finding_with_fix(format!("`:env` takes variable names, found \"{text}\""), name)
        }
        _ => None,
    }
}
