use crate::diagnostic::{Diagnostic, rule};
use crate::spec::{HomeFolder, HostGrant};
use crate::text::{Location, Spanned};

rule! {
    /// a permission that grants nothing
    ///
    /// Variables are expanded only at the beginning of a path. `:net` takes hosts with or without a port
    /// (`api.example.org`, `api.example.org:8443`, `*.example.org`, `192.168.1.5`), but no URLs or address ranges. `:run`
    /// takes programs without arguments, `:env` names without a dollar sign. Any other value does not grant the intended
    /// permission.
    ///
    /// ```eld fails
    /// (deftool :name "today" :description "Get the news." :allow (:net ["https://api.example.org/v1"]))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "today" :description "Get the news." :allow (:net ["api.example.org"]))
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
        "read" | "write" if has_variable(text) => finding(format!(
            "variables are expanded only at the beginning of a path; the rest of \"{text}\" is used as written"
        )),
        "run" if text.contains('$') => {
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

/// Returns whether a part of the path that is used as written looks like a variable.
fn has_variable(path: &str) -> bool {
    let written = match HomeFolder::split(path) {
        Ok(Some((_, rest))) => rest,
        Ok(None) | Err(_) => path.strip_prefix("./$").unwrap_or(path),
    };
    written.contains('$')
}
