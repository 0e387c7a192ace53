//! What scripts log, on stderr.

use super::output::{clean, say};
use crate::script::{LogLevel, ScriptEvent, ScriptSink};

/// Shows log lines of level info and above, and progress.
pub(super) fn sink() -> ScriptSink {
    ScriptSink::new(|event| {
        if !matches!(event, ScriptEvent::Logged { level: LogLevel::Debug, .. }) {
            say(&line(&event));
        }
    })
}

/// What a script said, as people read it.
pub(super) fn line(event: &ScriptEvent) -> String {
    match event {
        ScriptEvent::Logged { tool, level, text, .. } => {
            format!("{}: {tool}: {}", level.as_str(), clean(text))
        }
        ScriptEvent::Progressed { tool, fraction, text, .. } => {
            let percent = fraction.map_or_else(String::new, |fraction| format!("{:.0} % ", fraction * 100.0));
            format!("{tool}: {percent}{}", clean(text))
        }
    }
}
