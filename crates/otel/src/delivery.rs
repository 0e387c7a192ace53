//! What became of the spans, which the SDK only logs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// Spans that were not exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Their number.
    pub spans: u64,
    /// One clause, usually with the URL of the collector.
    pub reason: String,
}

/// The spans that were not exported so far, and the last failure.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    /// Number of spans that have ended and were not exported so far.
    missing: AtomicU64,
    /// The reason why the last request failed: one clause with the URL.
    failure: Mutex<Option<String>>,
}

impl Delivery {
    /// Counts a span that has ended.
    pub(crate) fn add_span(&self) {
        self.missing.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_failure(&self, failure: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Returns the spans that were not exported so far.
    pub(crate) fn lost(&self) -> Option<Lost> {
        let spans = self.missing.load(Ordering::Relaxed);
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reason = failure.unwrap_or_else(|| String::from("the queue was full"));
        (spans > 0).then_some(Lost { spans, reason })
    }
}

/// An exporter that counts what it exports.
#[derive(Debug)]
pub(crate) struct CountingExporter {
    pub(crate) exporter: opentelemetry_otlp::SpanExporter,
    pub(crate) delivery: Arc<Delivery>,
}

impl SpanExporter for CountingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len() as u64;
        self.exporter.export(batch).await?;
        self.delivery.missing.fetch_sub(count, Ordering::Relaxed);
        Ok(())
    }
}
