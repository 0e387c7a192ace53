//! The export of OpenTelemetry traces and metrics, of all workers of the program. The environment configures it.
//!
//! Without the feature `otel`, nothing is exported, and a warning reports that.

use std::sync::Arc;

use deftool_record::Secrets;
use deftool_worker::Observer;

use crate::Notices;

/// Returns an observer for the requests of a worker, if the environment names a collector. `secrets` returns the API key
/// and the other secrets of the project.
pub fn observer(
    notices: &Notices,
    secrets: impl FnOnce() -> (Option<String>, Secrets),
) -> Option<Arc<dyn Observer>> {
    export::observer(notices, secrets)
}

/// Exports the rest, in a bounded time. Called once, at the end of the program.
pub fn finish(notices: &Notices) {
    export::finish(notices);
}

#[cfg(feature = "otel")]
mod export {
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::Duration;

    use deftool_lang::text::{count, readable};
    use deftool_otel::{Lost, Telemetry};
    use deftool_record::{Redaction, Secrets};
    use deftool_worker::Observer;

    use crate::Notices;

    /// Time limit of the last export.
    const LAST_EXPORT: Duration = Duration::from_secs(2);

    static STATE: Mutex<State> = Mutex::new(State::New);

    enum State {
        /// No worker was opened.
        New,
        Off,
        On(Telemetry),
    }

    pub(super) fn observer(
        notices: &Notices,
        secrets: impl FnOnce() -> (Option<String>, Secrets),
    ) -> Option<Arc<dyn Observer>> {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::New = &*state {
            *state = start(notices).map_or(State::Off, State::On);
        }
        let State::On(telemetry) = &*state else { return None };
        let (key, secrets) = secrets();
        Some(telemetry.observer(Redaction::new(key.as_deref(), secrets)))
    }

    /// Starts the export, if the environment names a collector. Reports what cannot be used: a request does not fail
    /// because of it.
    fn start(notices: &Notices) -> Option<Telemetry> {
        Telemetry::from_environment().unwrap_or_else(|reason| {
            notices.send(&format!("warning: no telemetry is exported: {}", readable(&reason)));
            None
        })
    }

    pub(super) fn finish(notices: &Notices) {
        let state = std::mem::replace(&mut *STATE.lock().unwrap_or_else(PoisonError::into_inner), State::Off);
        if let State::On(telemetry) = state
            && let Some(Lost { spans, reason }) = telemetry.shutdown(LAST_EXPORT)
        {
            let spans = count(usize::try_from(spans).unwrap_or(usize::MAX), "span");
            notices.send(&format!("warning: {spans} lost: {}", readable(&reason)));
        }
    }
}

#[cfg(not(feature = "otel"))]
mod export {
    use std::sync::{Arc, Once};

    use deftool_record::Secrets;
    use deftool_worker::Observer;

    use crate::Notices;
    use crate::folders::environment;

    /// The variables that name a collector.
    const COLLECTORS: [&str; 3] = [
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    ];

    static WARNING: Once = Once::new();

    pub(super) fn observer(
        notices: &Notices,
        _: impl FnOnce() -> (Option<String>, Secrets),
    ) -> Option<Arc<dyn Observer>> {
        if let Some(name) = COLLECTORS.iter().find(|name| environment(name).is_some()) {
            WARNING.call_once(|| {
                notices.send(&format!(
                    "warning: {name} is ignored: this build has no telemetry; use a release package, or build with \
                     `--features otel`"
                ));
            });
        }
        None
    }

    pub(super) fn finish(_: &Notices) {}
}
