//! A collector that receives OTLP over HTTP.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::server::{Answer, Received, Server};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// A running collector.
pub struct Collector {
    server: Server,
}

impl Collector {
    /// Starts it on a free port.
    pub fn start() -> Self {
        Self { server: Server::answering_all(|_, _| Answer::whole(200, &[], "")) }
    }

    /// Returns the value of `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Returns all received requests.
    pub fn requests(&self) -> Vec<Received> {
        self.server.posts()
    }

    fn bodies(&self, path: &str) -> Vec<Vec<u8>> {
        let requests = self.requests();
        let requests = requests.iter().filter(|request| request.line == format!("POST {path}"));
        requests.map(|request| body_of(&request.raw).to_vec()).collect()
    }

    /// Returns the received spans in the order of their ends.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        let requests = self.bodies("/v1/traces");
        let requests = requests.iter().map(|body| ExportTraceServiceRequest::decode(&**body).unwrap());
        let resources = requests.flat_map(|request| request.resource_spans);
        let spans = resources.flat_map(|resource| {
            let attributes = attributes_of(resource.resource.unwrap_or_default().attributes);
            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            spans.map(move |span| ReceivedSpan::new(span, attributes.clone())).collect::<Vec<_>>()
        });
        spans.collect()
    }

    /// Returns the received metrics: the name, and for each point the attributes, the number of values and their sum.
    pub fn metrics(&self) -> BTreeMap<String, Vec<Point>> {
        let mut metrics = BTreeMap::new();
        for body in self.bodies("/v1/metrics") {
            let request = ExportMetricsServiceRequest::decode(&*body).unwrap();
            let resources = request.resource_metrics.into_iter();
            let scopes = resources.flat_map(|resource| resource.scope_metrics);
            for metric in scopes.flat_map(|scope| scope.metrics) {
                let Some(Data::Histogram(histogram)) = metric.data else { panic!("{}", metric.name) };
                let points = histogram.data_points.into_iter();
                let points = points.map(|point| Point {
                    attributes: attributes_of(point.attributes),
                    count: point.count,
                    sum: point.sum.unwrap_or_default(),
                });
                metrics.insert(metric.name, points.collect());
            }
        }
        metrics
    }
}

/// A point of a histogram.
#[derive(Debug)]
pub struct Point {
    /// The attributes, with values as text.
    pub attributes: BTreeMap<String, String>,
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: f64,
}

/// A span with ids in hexadecimal.
#[derive(Debug)]
pub struct ReceivedSpan {
    /// The name.
    pub name: String,
    /// The trace.
    pub trace: String,
    /// The span.
    pub id: String,
    /// The parent; empty: none.
    pub parent: String,
    /// The W3C `tracestate`.
    pub state: String,
    /// Whether the status is an error.
    pub is_error: bool,
    /// Start and end, as Unix time in nanoseconds.
    pub times: (u64, u64),
    /// The attributes, with values as text.
    pub attributes: BTreeMap<String, String>,
    /// The attributes of the resource.
    pub resource: BTreeMap<String, String>,
}

impl ReceivedSpan {
    fn new(span: Span, resource: BTreeMap<String, String>) -> Self {
        let status = span.status.unwrap_or_default();
        assert_eq!(status.message, "");
        Self {
            name: span.name,
            trace: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
            state: span.trace_state,
            is_error: status.code == 2,
            times: (span.start_time_unix_nano, span.end_time_unix_nano),
            attributes: attributes_of(span.attributes),
            resource,
        }
    }

    /// Returns the value of `traceparent` for a child of this span.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace, self.id)
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns attributes with their values as text.
fn attributes_of(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| text_of(value.and_then(|value| value.value));
    attributes.into_iter().map(|attribute| (attribute.key, text(attribute.value))).collect()
}

fn text_of(value: Option<Any>) -> String {
    match value {
        Some(Any::StringValue(text)) => text,
        Some(Any::BoolValue(flag)) => flag.to_string(),
        Some(Any::IntValue(number)) => number.to_string(),
        Some(Any::DoubleValue(number)) => number.to_string(),
        Some(Any::ArrayValue(array)) => {
            array.values.into_iter().map(|value| text_of(value.value)).collect::<Vec<_>>().join(" ")
        }
        other => panic!("{other:?}"),
    }
}

fn body_of(raw: &[u8]) -> &[u8] {
    let head = raw.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    &raw[head + 4..]
}
