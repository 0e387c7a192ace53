//! OpenTelemetry export of the requests of workers: spans and metrics by the `GenAI` semantic conventions, over OTLP.
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use deftool_otel::Telemetry;
//! use deftool_record::{Redaction, Secrets};
//! use deftool_worker::WorkerConfig;
//!
//! if let Some(telemetry) = Telemetry::from_environment()? {
//!     let redaction = Redaction::new(Some("the API key"), Secrets::default());
//!     // The requests of a worker with this configuration are exported.
//!     let config = WorkerConfig { observer: Some(telemetry.observer(redaction)), ..WorkerConfig::default() };
//!     let lost = telemetry.shutdown(Duration::from_secs(2));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The observer of a request builds an operation for each model call, each tool call and the request itself. When an
//! operation has ended, [`Telemetry`] measures it and adds its span to the queue of the batch processor of the SDK, whose
//! thread exports it. If the queue is full, or if the collector does not accept spans, they are counted as lost: a request
//! never waits.
//!
//! | file | |
//! |---|---|
//! | `settings` | the environment variables |
//! | `convention` | the names of the semantic conventions |
//! | `operation` | an operation that has ended |
//! | `observer` | observations of a request → operations |
//! | `server` | provider, address and port of the model server |
//! | `content` | messages, arguments and results: bounded, redacted, as JSON |
//! | `spans`, `metrics` | operations → spans and measurements |
//! | `exporter` | the batch processor and the exporters |
//! | `delivery` | the count of the spans that are not exported |
//! | `client` | the HTTP client of the exporters |
//!
//! The names are those of the `GenAI` semantic conventions of OpenTelemetry, which are in development: the repository
//! `open-telemetry/semantic-conventions-genai`, as of November 2026 (based on semantic conventions 1.42).
//!
//! Not here: instrumentation of the code, log records, and spans of MCP servers, of HTTP requests of scripts, and of the
//! parts of a request that are neither a model call nor a tool call.

mod attribute;
mod client;
mod content;
mod convention;
mod delivery;
mod exporter;
mod metrics;
mod observer;
mod operation;
mod server;
mod settings;
mod spans;

pub use delivery::Lost;
pub use exporter::Telemetry;
