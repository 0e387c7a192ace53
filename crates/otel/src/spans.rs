//! Converts operations to spans.

use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::InstrumentationScope;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::operation::{Operation, OperationKind};

/// Returns the span of a finished operation; `None`: it has no span.
pub(crate) fn span_of(operation: Operation, scope: &InstrumentationScope) -> Option<SpanData> {
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
        attributes: operation.attributes,
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
