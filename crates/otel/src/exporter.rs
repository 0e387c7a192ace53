//! The threads of the SDK that export spans and metrics.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use deftool_record::Redaction;
use deftool_worker::Observer;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{MetricExporter, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, IdGenerator, RandomIdGenerator, SpanExporter as _, SpanProcessor,
};
use reqwest::Url;

use crate::client::Client;
use crate::delivery::{CountingExporter, Delivery, Lost};
use crate::metrics::Metrics;
use crate::observer::{OperationObserver, Sink};
use crate::operation::Operation;
use crate::settings::Settings;
use crate::spans::span_of;

/// The export of spans and metrics. What is queued is exported by [`Telemetry::shutdown`].
pub struct Telemetry {
    pipeline: Arc<Pipeline>,
    captures_content: bool,
}

impl Telemetry {
    /// Starts the threads that export, as the environment variables specify. They connect to the collector when there is
    /// something to export. Returns `None` if no endpoint is set, or if the export is disabled.
    ///
    /// # Errors
    /// If a variable has a value that is not supported, or if TLS or an exporter cannot be set up, as a message.
    pub fn from_environment() -> Result<Option<Self>, String> {
        let settings = Settings::read(&|name| std::env::var(name).ok())?;
        settings.map(|settings| Self::start(&settings)).transpose()
    }

    fn start(settings: &Settings) -> Result<Self, String> {
        let scope = InstrumentationScope::builder("deftool").with_version(env!("CARGO_PKG_VERSION")).build();
        let (resource, delivery) = (resource(), Arc::new(Delivery::default()));
        let metrics = settings.metrics.as_ref().map(|url| metric_exporter(url, settings)).transpose()?;
        let metrics = metrics.map(|exporter| Metrics::new(exporter, resource.clone(), scope.clone()));
        let spans = settings.traces.as_ref().map(|url| span_exporter(url, settings, &resource, &delivery));
        let spans = spans.transpose()?.map(|exporter| {
            let exporter = CountingExporter { exporter, delivery: Arc::clone(&delivery) };
            BatchSpanProcessor::builder(exporter).build()
        });
        let pipeline = Arc::new(Pipeline { spans, metrics, scope, delivery });
        Ok(Self { pipeline, captures_content: settings.captures_content })
    }

    /// Returns an observer for the requests of a worker. `redaction`: the secrets of its project.
    pub fn observer(&self, redaction: Redaction) -> Arc<dyn Observer> {
        let pipeline = Arc::clone(&self.pipeline);
        let sink: Sink = Arc::new(move |operation| pipeline.add(operation));
        let (redaction, captures_content) = (Arc::new(redaction), self.captures_content);
        Arc::new(OperationObserver { sink, redaction, captures_content })
    }

    /// Exports the rest and ends the threads, in the time `limit`. Returns the spans that were not exported.
    pub fn shutdown(self, limit: Duration) -> Option<Lost> {
        let delivery = Arc::clone(&self.pipeline.delivery);
        let (ended, end) = channel::<()>();
        let work = move || {
            self.pipeline.shutdown(limit);
            drop(ended);
        };
        // The reader of the metrics has a time limit of its own, so this thread may end later.
        let _ = std::thread::Builder::new().spawn(work);
        let _ = end.recv_timeout(limit);
        delivery.lost()
    }
}

/// Measures and exports operations.
struct Pipeline {
    spans: Option<BatchSpanProcessor>,
    metrics: Option<Metrics>,
    scope: InstrumentationScope,
    delivery: Arc<Delivery>,
}

impl Pipeline {
    /// Measures an operation and adds its span to the queue, or drops the span if the queue is full. Never blocks.
    fn add(&self, operation: Operation) {
        if let Some(metrics) = &self.metrics {
            metrics.measure(&operation);
        }
        if let Some(spans) = &self.spans
            && let Some(span) = span_of(operation, &self.scope)
        {
            self.delivery.add_span();
            spans.on_end(span);
        }
    }

    /// Exports the rest. A failed export of metrics is not reported.
    fn shutdown(&self, limit: Duration) {
        if let Some(spans) = &self.spans {
            let _ = spans.shutdown_with_timeout(limit);
        }
        if let Some(metrics) = &self.metrics {
            metrics.shutdown();
        }
    }
}

fn span_exporter(
    url: &Url,
    settings: &Settings,
    resource: &Resource,
    delivery: &Arc<Delivery>,
) -> Result<SpanExporter, String> {
    let client = Client::new(url, settings.timeout, Arc::clone(delivery))?;
    let builder = SpanExporter::builder().with_http().with_http_client(client).with_endpoint(url.as_str());
    let mut exporter = builder.build().map_err(|error| error.to_string())?;
    exporter.set_resource(resource);
    Ok(exporter)
}

/// Does not retry: the next export contains the same values.
fn metric_exporter(url: &Url, settings: &Settings) -> Result<MetricExporter, String> {
    let client = Client::new(url, settings.timeout, Arc::default())?;
    let builder = MetricExporter::builder().with_http().with_http_client(client).with_endpoint(url.as_str());
    builder.with_retry_policy(RetryPolicy::disabled()).build().map_err(|error| error.to_string())
}

/// Returns the attributes of this process. Those of the environment take precedence.
fn resource() -> Resource {
    let name = std::env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty());
    let defaults = [
        KeyValue::new("service.name", "deftool"),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        // Cumulative metrics of several processes must not be mixed.
        KeyValue::new("service.instance.id", RandomIdGenerator::default().new_trace_id().to_string()),
    ];
    Resource::builder_empty()
        .with_attributes(defaults)
        .with_detectors(&[Box::new(TelemetryResourceDetector), Box::new(EnvResourceDetector::new())])
        .with_attributes(name.map(|name| KeyValue::new("service.name", name)))
        .build()
}
