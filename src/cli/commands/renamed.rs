//! Names of commands and options that changed before the first release, and their replacements.

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};

/// Old names with the new form.
const RENAMED: &[(&str, &str)] = &[
    ("requests", "`deftool journal`"),
    ("resume", "`deftool journal resume`"),
    ("serve", "the program `deftool-serve`"),
    ("targets", "`deftool compile --list-targets`"),
    ("watch", "`deftool test --watch`"),
    ("--project", "`--directory`"),
    ("--replay-lenient", "`--lenient`"),
    ("--replay-tools", "`--recorded-tools` of `deftool run`; `deftool replay` runs no tools"),
];

/// Adds the new form to the error about an unknown name, if it is an old one.
pub(in crate::cli) fn with_new_name(mut error: Error) -> Error {
    let unknown = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let unknown = unknown.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::String(name)) => Some(name.as_str()),
        _ => None,
    });
    let renamed = RENAMED.iter().find(|(old, _)| unknown == Some(*old));
    if let Some((_, new)) = renamed {
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
        let tip = StyledStr::from(format!("use {new}"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}
