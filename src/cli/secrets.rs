//! What a recording must not hold, as the commands that record and replay know it: `--redact`, and the variables that the
//! project's tools may read and whose names say that they hold secrets.

use super::CliError;
use crate::project::LoadedTool;
use crate::worker::{Secrets, is_secret_name};

/// The secrets of a run with these tools.
///
/// # Errors
/// When one of `patterns` is no regular expression.
pub(super) fn secrets<'t>(
    patterns: &[String],
    tools: impl Iterator<Item = &'t LoadedTool>,
) -> Result<Secrets, CliError> {
    let mut secrets = Secrets::default();
    for pattern in patterns {
        let added = secrets.add_pattern(pattern);
        added
            .map_err(|error| CliError::Usage(format!("--redact takes a regular expression, and {error}")))?;
    }
    let granted = tools.flat_map(|loaded| &loaded.tool.permissions.env);
    let mut names: Vec<&String> = granted.filter(|name| is_secret_name(name)).collect();
    names.sort();
    names.dedup();
    // A name with `=` or NUL is no variable's, and std would not take it.
    for name in names.into_iter().filter(|name| !name.is_empty() && !name.contains(['=', '\0'])) {
        if let Ok(value) = std::env::var(name) {
            secrets.add_value(&value);
        }
    }
    Ok(secrets)
}
