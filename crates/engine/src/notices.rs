//! Messages for the user while workers are opened and used.

use std::sync::Arc;

type Show = dyn Fn(&str) + Send + Sync;

/// Receives what the user should know, one line each, for example why tools are left out. Ignores the lines by default.
#[derive(Clone, Default)]
pub struct Notices(Option<Arc<Show>>);

impl Notices {
    /// Passes the lines to `show`. A line may contain text of a project, but no hidden characters.
    pub fn new(show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(show)))
    }

    /// Passes a line on.
    pub fn send(&self, line: &str) {
        if let Some(show) = &self.0 {
            show(line);
        }
    }
}

impl std::fmt::Debug for Notices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notices")
    }
}
