//! The calls without a result of a request that continues.

use std::collections::BTreeMap;
use std::path::Path;

use deftool_chat::request::{Event, JournalEntry};
use deftool_lang::schema::ToolSet;
use deftool_project::quote_words;

use crate::cli::terminal::output::clean;

/// Checks that the tools of the calls without a result exist, so that a mistake in a spec does not end the request.
///
/// # Errors
/// If one of them is missing or has errors. The message is for the user.
pub(in crate::cli) fn check_tools(
    request: &str,
    journal: &Path,
    entries: &[(u64, JournalEntry)],
    tools: &ToolSet,
) -> Result<(), String> {
    let open = open_tools(entries);
    let Some(name) = open.values().find(|name| tools.get(name).is_none()) else { return Ok(()) };
    let words = ["deftool", "journal", "cancel", &journal.to_string_lossy(), request];
    Err(format!(
        "the request {} waits for the tool `{}`, which is missing or has errors; correct it and resume again, or end the \
         request with `{}`",
        clean(request),
        clean(name),
        clean(&quote_words(&words))
    ))
}

/// Returns the tools of the calls without a result.
fn open_tools(entries: &[(u64, JournalEntry)]) -> BTreeMap<&str, &str> {
    let mut open = BTreeMap::new();
    for (_, entry) in entries {
        match entry {
            JournalEntry::Event(Event::ToolCall { id, name, .. }) => {
                open.insert(id.as_str(), name.as_str());
            }
            JournalEntry::Event(Event::ToolFinished { id, .. }) => {
                open.remove(id.as_str());
            }
            _ => {}
        }
    }
    open
}
