//! Names of commands and options that are called differently here, and what to use instead.

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};

/// Words of a command line, one of which is unknown, with what to use instead. The first match counts.
const RENAMED: &[(&str, &str)] = &[
    ("lint", "`deftool check`"),
    ("requests", "`deftool journal`"),
    ("resume", "`deftool journal resume`"),
    ("serve acp", "`deftool acp`"),
    ("serve lsp", "`deftool lsp`"),
    ("serve mcp", "`deftool mcp`"),
    ("serve rpc", "`deftool rpc`"),
    ("serve", "`deftool mcp`, `rpc`, `acp` or `lsp`, or the program `deftool-serve`"),
    ("targets", "`deftool compile --list-targets`"),
    ("watch", "`deftool test --watch`"),
    ("--project", "`--directory`"),
    ("--replay-lenient", "`--lenient`"),
    ("--replay-tools", "`--recorded-tools` of `deftool run`; `deftool replay` runs no tools"),
    ("run --output", "`--result`"),
    ("run --output-retries", "`--result-retries`"),
];

/// Adds what to use instead to the error about an unknown name, if it is a known one. `words`: the command line.
pub(in crate::cli) fn with_new_name(mut error: Error, words: &[String]) -> Error {
    let unknown = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let unknown = unknown.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::String(name)) => Some(name.as_str()),
        _ => None,
    });
    let is_meant = |old: &str| {
        let is_unknown = |word: &str| unknown == Some(word);
        let mut all = old.split(' ');
        all.clone().any(is_unknown)
            && all.all(|word| is_unknown(word) || words.iter().any(|given| given == word))
    };
    let renamed = RENAMED.iter().find(|(old, _)| is_meant(old));
    if let Some((_, new)) = renamed {
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
        let tip = StyledStr::from(format!("use {new}"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}
