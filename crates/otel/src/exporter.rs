//! The thread that exports spans and metrics.

use std::io;
use std::sync::mpsc::{Receiver as DoneReceiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deftool_record::Redaction;
use deftool_worker::Observer;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{MetricExporter, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use reqwest::Url;
use tokio::sync::{mpsc, watch};
use tokio::time::interval_at;

use crate::client::{Client, Failure};
use crate::metrics::Metrics;
use crate::observer::{OperationObserver, Sink};
use crate::operation::Operation;
use crate::queue::Queue;
use crate::settings::Settings;
use crate::spans::span_of;

/// Maximum number of spans in one export.
const MAX_BATCH: usize = 512;
/// Interval between exports of spans, and of metrics.
const SPANS_INTERVAL: Duration = Duration::from_secs(5);
const METRICS_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum attempts of one export, and the delay before the second. It doubles with each further attempt.
const MAX_ATTEMPTS: u32 = 4;
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// Time for the thread to end after its deadline.
const GRACE: Duration = Duration::from_millis(250);

/// The export of spans and metrics.
pub struct Telemetry {
    queue: Arc<Queue>,
    captures_content: bool,
    /// The deadline of the last export; `None` before the shutdown.
    stop: watch::Sender<Option<Instant>>,
    /// Closed when the thread has ended.
    done: DoneReceiver<()>,
    failure: SharedFailure,
}

/// Spans that were not exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Their number.
    pub spans: u64,
    /// One clause, usually with the URL of the collector.
    pub reason: String,
}

/// The last failure of an export of spans.
type SharedFailure = Arc<Mutex<Option<Failure>>>;

impl Telemetry {
    /// Starts the thread that exports. It connects to the collector when there is something to export.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(settings: Settings) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (queue, receiver) = Queue::new();
        let (queue, failure) = (Arc::new(queue), SharedFailure::default());
        let (stop, stopped) = watch::channel(None);
        let (ended, done) = channel();
        let captures_content = settings.captures_content;
        let (shared_queue, shared_failure) = (Arc::clone(&queue), Arc::clone(&failure));
        let export = move || {
            let _ended = ended;
            let mut exporter =
                Exporter::new(&settings, shared_queue, receiver, stopped.clone(), shared_failure);
            runtime.block_on(async {
                tokio::select! {
                    () = exporter.work() => {}
                    () = deadline(stopped) => {}
                }
            });
            // Does not wait for a name server.
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name(String::from("telemetry")).spawn(export)?;
        Ok(Self { queue, captures_content, stop, done, failure })
    }

    /// Returns an observer for the requests of a worker. `redaction`: the secrets of its project.
    pub fn observer(&self, redaction: Redaction) -> Arc<dyn Observer> {
        let queue = Arc::clone(&self.queue);
        let sink: Sink = Arc::new(move |operation| queue.send(operation));
        let (redaction, captures_content) = (Arc::new(redaction), self.captures_content);
        Arc::new(OperationObserver { sink, redaction, captures_content })
    }

    /// Exports the rest and ends the thread, in the time `limit`. Returns the spans that were not exported.
    pub fn shutdown(self, limit: Duration) -> Option<Lost> {
        self.stop.send_replace(Some(Instant::now() + limit));
        let _ = self.done.recv_timeout(limit + GRACE);
        let spans = self.queue.missing();
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reason = failure.map_or_else(|| String::from("the queue was full"), |failure| failure.reason);
        (spans > 0).then_some(Lost { spans, reason })
    }
}

/// Waits for the shutdown.
async fn stopped(mut stop: watch::Receiver<Option<Instant>>) {
    // Fails if `Telemetry` was dropped without a shutdown.
    let _ = stop.wait_for(Option::is_some).await;
}

/// Waits until the deadline of the last export.
async fn deadline(mut stop: watch::Receiver<Option<Instant>>) {
    let deadline = stop.wait_for(Option::is_some).await.ok().and_then(|deadline| *deadline);
    if let Some(deadline) = deadline {
        tokio::time::sleep_until(deadline.into()).await;
    }
}

/// The state of the thread.
struct Exporter {
    queue: Arc<Queue>,
    receiver: mpsc::Receiver<Operation>,
    stop: watch::Receiver<Option<Instant>>,
    failure: SharedFailure,
    scope: InstrumentationScope,
    spans: Option<SpanExporter>,
    batch: Vec<SpanData>,
    metrics: Option<(Metrics, MetricExporter)>,
}

impl Exporter {
    /// Creates the exporters. What cannot be set up is not exported, and its spans are lost.
    fn new(
        settings: &Settings,
        queue: Arc<Queue>,
        receiver: mpsc::Receiver<Operation>,
        stop: watch::Receiver<Option<Instant>>,
        failure: SharedFailure,
    ) -> Self {
        let scope = InstrumentationScope::builder("deftool").with_version(env!("CARGO_PKG_VERSION")).build();
        let resource = resource(settings);
        let spans = settings.traces.as_ref().and_then(|url| {
            span_exporter(url, settings, &resource, &failure)
                .inspect_err(|reason| {
                    let failed = Failure { reason: reason.clone(), is_temporary: false };
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failed);
                })
                .ok()
        });
        let metrics = settings.metrics.as_ref().and_then(|url| metric_exporter(url, settings).ok());
        let metrics = metrics.map(|exporter| {
            (Metrics::new(resource.clone(), scope.clone(), exporter.temporality()), exporter)
        });
        Self { queue, receiver, stop, failure, scope, spans, batch: Vec::new(), metrics }
    }

    /// Exports until the end.
    async fn work(&mut self) {
        let now = tokio::time::Instant::now();
        let mut spans_due = interval_at(now + SPANS_INTERVAL, SPANS_INTERVAL);
        let mut metrics_due = interval_at(now + METRICS_INTERVAL, METRICS_INTERVAL);
        let end = stopped(self.stop.clone());
        tokio::pin!(end);
        loop {
            tokio::select! {
                biased;
                () = &mut end => break,
                _ = spans_due.tick() => self.export_spans().await,
                _ = metrics_due.tick() => self.export_metrics().await,
                Some(operation) = self.receiver.recv() => {
                    self.take(operation);
                    if self.batch.len() >= MAX_BATCH {
                        self.export_spans().await;
                    }
                }
            }
        }
        while let Ok(operation) = self.receiver.try_recv() {
            self.take(operation);
        }
        self.export_spans().await;
        self.export_metrics().await;
    }

    /// Measures an operation and adds its span to the batch.
    fn take(&mut self, mut operation: Operation) {
        self.queue.release(&operation);
        operation.finish();
        if let Some((metrics, _)) = &mut self.metrics {
            metrics.measure(&operation);
        }
        if self.spans.is_some() {
            self.batch.extend(span_of(&operation, &self.scope));
        }
    }

    async fn export_spans(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let Some(exporter) = &self.spans else { return };
        for spans in batch.chunks(MAX_BATCH) {
            let mut delay = FIRST_DELAY;
            for attempt in 1..=MAX_ATTEMPTS {
                if exporter.export(spans.to_vec()).await.is_ok() {
                    self.queue.add_exported(spans.len());
                    break;
                }
                let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let is_last = attempt == MAX_ATTEMPTS || self.stop.borrow().is_some();
                if is_last || !failure.is_some_and(|failure| failure.is_temporary) {
                    break;
                }
                tokio::select! {
                    () = tokio::time::sleep(delay) => {}
                    () = stopped(self.stop.clone()) => {}
                }
                delay *= 2;
            }
        }
    }

    /// Exports the metrics. A failure is not reported: the next export contains the same values.
    async fn export_metrics(&self) {
        if let Some((metrics, exporter)) = &self.metrics
            && let Some(values) = metrics.collect()
        {
            let _ = exporter.export(&values).await;
        }
    }
}

/// The exporters do not retry: their delays block the thread.
fn no_retries() -> RetryPolicy {
    RetryPolicy::default().with_max_retries(0)
}

fn span_exporter(
    url: &Url,
    settings: &Settings,
    resource: &Resource,
    failure: &SharedFailure,
) -> Result<SpanExporter, String> {
    let client = Client::new(url, settings.timeout, Arc::clone(failure))?;
    let builder = SpanExporter::builder().with_http().with_http_client(client);
    let builder = builder.with_retry_policy(no_retries()).with_endpoint(url.as_str());
    let mut exporter = builder.build().map_err(|error| error.to_string())?;
    exporter.set_resource(resource);
    Ok(exporter)
}

fn metric_exporter(url: &Url, settings: &Settings) -> Result<MetricExporter, String> {
    let client = Client::new(url, settings.timeout, SharedFailure::default())?;
    let builder = MetricExporter::builder().with_http().with_http_client(client);
    let builder = builder.with_retry_policy(no_retries()).with_endpoint(url.as_str());
    builder.build().map_err(|error| error.to_string())
}

/// Returns the attributes of this process. Those of the environment take precedence.
fn resource(settings: &Settings) -> Resource {
    let defaults = [
        KeyValue::new("service.name", "deftool"),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", instance_id()),
    ];
    let resource = Resource::builder_empty().with_attributes(defaults);
    let resource =
        resource.with_detectors(&[Box::new(TelemetryResourceDetector), Box::new(EnvResourceDetector::new())]);
    match &settings.service_name {
        Some(name) => resource.with_service_name(name.clone()).build(),
        None => resource.build(),
    }
}

/// Returns a random UUID: cumulative metrics of several processes must not be mixed.
fn instance_id() -> String {
    // Version 4, variant 1.
    let bits = fastrand::u128(..) & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let text = format!("{bits:032x}");
    let part = |range| text.get(range).unwrap_or_default();
    [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-")
}
