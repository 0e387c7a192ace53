//! Converts operations to spans.

use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::attribute::AttributeValue;
use crate::operation::{Operation, OperationKind};

/// Returns the span of a finished operation; `None`: it has no span.
pub(crate) fn span_of(operation: &Operation, scope: &InstrumentationScope) -> Option<SpanData> {
    let spans = operation.spans.as_ref()?;
    let own = &spans.own;
    let state = TraceState::from_str(own.tracestate()).unwrap_or_default();
    let flags = TraceFlags::new(own.flags());
    let (trace, span) = (TraceId::from(own.trace_id()), SpanId::from(own.span_id()));
    Some(SpanData {
        span_context: SpanContext::new(trace, span, flags, false, state),
        parent_span_id: spans.parent.map_or(SpanId::INVALID, |(id, _)| SpanId::from(id)),
        parent_span_is_remote: spans.parent.is_some_and(|(_, is_remote)| is_remote),
        span_kind: match operation.kind {
            OperationKind::Chat => SpanKind::Client,
            OperationKind::Agent | OperationKind::Tool => SpanKind::Internal,
        },
        name: operation.name().into(),
        start_time: time(operation.start_ms),
        end_time: time(operation.end_ms),
        attributes: operation.attributes.iter().map(|(name, value)| key_value(name, value)).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        // The description could contain content.
        status: if operation.error.is_some() { Status::error("") } else { Status::Unset },
        instrumentation_scope: scope.clone(),
    })
}

fn time(unix_ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(unix_ms)
}

/// Converts an attribute.
pub(crate) fn key_value(name: &'static str, value: &AttributeValue) -> KeyValue {
    let value = match value {
        AttributeValue::Text(text) => Value::from(text.clone()),
        AttributeValue::Texts(texts) => {
            Value::Array(Array::String(texts.iter().cloned().map(StringValue::from).collect()))
        }
        AttributeValue::Integer(number) => Value::I64(*number),
        AttributeValue::Number(number) => Value::F64(*number),
        AttributeValue::Flag(flag) => Value::Bool(*flag),
    };
    KeyValue::new(name, value)
}
