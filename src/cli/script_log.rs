//! What scripts log, on stderr: at once, or in its place among the events of the request that is followed.

use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::output::{clean, say};
use crate::script::{LogLevel, ScriptEvent, ScriptSink};

/// Where lines go while a request is followed.
static FOLLOWED: Mutex<Option<UnboundedSender<String>>> = Mutex::new(None);

/// Shows log lines of level info and above, and progress.
pub(super) fn sink() -> ScriptSink {
    ScriptSink::new(|event| {
        if matches!(event, ScriptEvent::Logged { level: LogLevel::Debug, .. }) {
            return;
        }
        let line = line(&event);
        // Not under the lock: who reads what is said may stand still.
        let followed = FOLLOWED.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match followed {
            // A call logs a bounded number of lines, so that few wait.
            Some(lines) => drop(lines.send(line)),
            None => say(&line),
        }
    })
}

/// The lines of scripts while this lives. A script logs on its own thread, and may be quicker than who shows the text
/// that came before its call.
pub(super) struct ScriptLines(UnboundedReceiver<String>);

impl ScriptLines {
    pub(super) fn follow() -> Self {
        let (lines, waiting) = unbounded_channel();
        *FOLLOWED.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines);
        Self(waiting)
    }

    pub(super) async fn next(&mut self) -> String {
        match self.0.recv().await {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }

    /// Says what waits.
    pub(super) fn say_waiting(&mut self) {
        while let Ok(line) = self.0.try_recv() {
            say(&line);
        }
    }
}

impl Drop for ScriptLines {
    fn drop(&mut self) {
        *FOLLOWED.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.say_waiting();
    }
}

/// What a script said, as people read it.
pub(super) fn line(event: &ScriptEvent) -> String {
    match event {
        ScriptEvent::Logged { tool, level, text, .. } => {
            format!("{}: {tool}: {}", level.as_str(), indented(text))
        }
        ScriptEvent::Progressed { tool, fraction, text, .. } => {
            let percent = fraction.map_or_else(String::new, |fraction| format!("{:.0} % ", fraction * 100.0));
            format!("{tool}: {percent}{}", indented(text))
        }
    }
}

/// `text` without what a terminal obeys; no line of it but the first begins where lines of ours do.
fn indented(text: &str) -> String {
    clean(text).replace('\n', "\n    ")
}
