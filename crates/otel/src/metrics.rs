//! Measures operations.

use opentelemetry::metrics::{Histogram, MeterProvider};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;

use crate::convention as names;
use crate::operation::{Operation, OperationKind};

/// The attributes of spans that are also attributes of measurements.
const CHAT: [&str; 7] = [
    names::OPERATION,
    names::PROVIDER,
    names::REQUEST_MODEL,
    names::RESPONSE_MODEL,
    names::SERVER_ADDRESS,
    names::SERVER_PORT,
    names::ERROR_TYPE,
];
const TOOL: [&str; 4] = [names::TOOL_NAME, names::TOOL_TYPE, names::AGENT, names::ERROR_TYPE];
const AGENT: [&str; 3] = [names::AGENT, names::REQUEST_MODEL, names::ERROR_TYPE];

/// The instruments, and their provider with a thread that exports their values.
pub(crate) struct Metrics {
    provider: SdkMeterProvider,
    tokens: Histogram<u64>,
    chat: Histogram<f64>,
    first_chunk: Histogram<f64>,
    output_chunk: Histogram<f64>,
    tool: Histogram<f64>,
    agent: Histogram<f64>,
}

impl Metrics {
    pub(crate) fn new(exporter: MetricExporter, resource: Resource, scope: InstrumentationScope) -> Self {
        let provider = SdkMeterProvider::builder().with_periodic_exporter(exporter);
        let provider = provider.with_resource(resource).build();
        let meter = provider.meter_with_scope(scope);
        let seconds = |name, about, boundaries: &[f64]| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(about);
            histogram.with_boundaries(boundaries.to_vec()).build()
        };
        let tokens = meter.u64_histogram(names::TOKEN_USAGE).with_unit("{token}");
        let tokens = tokens.with_description("Number of input and output tokens used.");
        Self {
            tokens: tokens.with_boundaries(names::TOKENS.to_vec()).build(),
            chat: seconds(names::CHAT_DURATION, "GenAI operation duration.", &names::SECONDS),
            first_chunk: seconds(names::FIRST_CHUNK, "Time to receive the first chunk.", &names::SECONDS),
            output_chunk: seconds(names::OUTPUT_CHUNK, "Time per output chunk.", &names::SECONDS),
            tool: seconds(names::TOOL_DURATION, "The duration of a single tool execution.", &names::SECONDS),
            agent: seconds(
                names::AGENT_DURATION,
                "The duration of a single agent invocation.",
                &names::AGENT_SECONDS,
            ),
            provider,
        }
    }

    /// Measures a finished operation.
    #[allow(clippy::cast_precision_loss)] // milliseconds
    pub(crate) fn measure(&self, operation: &Operation) {
        match operation.kind {
            OperationKind::Agent => self.agent.record(operation.seconds(), &attributes(operation, &AGENT)),
            OperationKind::Tool => self.tool.record(operation.seconds(), &attributes(operation, &TOOL)),
            OperationKind::Chat => {
                let mut all = attributes(operation, &CHAT);
                self.chat.record(operation.seconds(), &all);
                all.retain(|attribute| attribute.key.as_str() != names::ERROR_TYPE);
                if let Some(Value::F64(seconds)) = operation.get(names::TIME_TO_FIRST_CHUNK) {
                    self.first_chunk.record(*seconds, &all);
                }
                for gap_ms in &operation.gaps_ms {
                    self.output_chunk.record(f64::from(*gap_ms) / 1e3, &all);
                }
                for (name, kind) in [(names::INPUT_TOKENS, "input"), (names::OUTPUT_TOKENS, "output")] {
                    if let Some(Value::I64(count)) = operation.get(name) {
                        let kind = KeyValue::new(names::TOKEN_TYPE, kind);
                        let attributes: Vec<_> = all.iter().cloned().chain([kind]).collect();
                        self.tokens.record(u64::try_from(*count).unwrap_or_default(), &attributes);
                    }
                }
            }
        }
    }

    /// Exports the values and ends the thread.
    pub(crate) fn shutdown(&self) {
        let _ = self.provider.shutdown();
    }
}

fn attributes(operation: &Operation, names: &[&'static str]) -> Vec<KeyValue> {
    let found = names.iter().filter_map(|name| Some(KeyValue::new(*name, operation.get(name)?.clone())));
    found.collect()
}
