//! The secrets that recordings must not contain: matches of `--redact`, and environment variables that the project's
//! tools may read and that have a name that suggests a secret.

use deftool_project::LoadedTool;
use deftool_worker::{Secrets, is_secret_name};

use super::command::CliError;

/// Returns the secrets of a run with these tools.
///
/// # Errors
/// If a pattern is not a valid regular expression.
pub(super) fn secrets<'t>(
    patterns: &[String],
    tools: impl Iterator<Item = &'t LoadedTool>,
) -> Result<Secrets, CliError> {
    let mut secrets = Secrets::default();
    for pattern in patterns {
        let added = secrets.add_pattern(pattern);
        added.map_err(|error| CliError::Usage(format!("--redact: {error}")))?;
    }
    let granted = tools.flat_map(|loaded| &loaded.tool.permissions.env);
    let mut names: Vec<&String> = granted.filter(|name| is_secret_name(name)).collect();
    names.sort();
    names.dedup();
    // Names with `=` or NUL are invalid, and std panics on them.
    for name in names.into_iter().filter(|name| !name.is_empty() && !name.contains(['=', '\0'])) {
        if let Ok(value) = std::env::var(name) {
            secrets.add_value(&value);
        }
    }
    Ok(secrets)
}
