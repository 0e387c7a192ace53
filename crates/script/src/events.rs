//! Log lines and progress of running scripts.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The level of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LogLevel {
    /// Details for the script's author.
    Debug,
    /// Information. Also the level of `print`.
    Info,
    /// A problem that does not stop the call.
    Warn,
    /// An error.
    Error,
}

impl LogLevel {
    /// Returns the level in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// An event that a running script emits in addition to its result.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptEvent {
    /// A log line.
    Logged {
        /// The name of the tool.
        tool: String,
        /// The ID of the request, or empty.
        request_id: String,
        /// The ID of the call in the conversation, or empty.
        call_id: String,
        /// The level.
        level: LogLevel,
        /// The line, truncated and without control characters.
        text: String,
    },
    /// The progress of a call.
    Progressed {
        /// The name of the tool.
        tool: String,
        /// The ID of the request, or empty.
        request_id: String,
        /// The ID of the call in the conversation, or empty.
        call_id: String,
        /// The completed fraction, from 0 to 1, if known.
        fraction: Option<f64>,
        /// The current activity.
        text: String,
    },
}

/// The receiver of log lines and progress. It runs on the script's thread and must not block. The default sends events
/// to `tracing` with the target `deftool::script`.
#[derive(Clone, Default)]
pub struct ScriptSink(Option<Arc<dyn Fn(ScriptEvent) + Send + Sync>>);

impl ScriptSink {
    /// Creates a sink that calls `sink` for each event.
    pub fn new(sink: impl Fn(ScriptEvent) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(sink)))
    }

    /// Sends an event.
    pub fn send(&self, event: ScriptEvent) {
        if let Some(sink) = &self.0 {
            return sink(event);
        }
        match event {
            ScriptEvent::Logged { tool, request_id, level, text, .. } => match level {
                LogLevel::Debug => tracing::debug!(target: "deftool::script", tool, request_id, "{text}"),
                LogLevel::Info => tracing::info!(target: "deftool::script", tool, request_id, "{text}"),
                LogLevel::Warn => tracing::warn!(target: "deftool::script", tool, request_id, "{text}"),
                LogLevel::Error => tracing::error!(target: "deftool::script", tool, request_id, "{text}"),
            },
            ScriptEvent::Progressed { tool, request_id, fraction, text, .. } => {
                tracing::debug!(target: "deftool::script", tool, request_id, fraction, "{text}");
            }
        }
    }
}

impl fmt::Debug for ScriptSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "ScriptSink(..)" } else { "ScriptSink(tracing)" })
    }
}
