//! The part of a distributed trace that a request belongs to.

use deftool_lang::tool::TraceContext;
use serde::{Deserialize, Serialize};

/// The spans of a trace above the operations of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestTrace {
    /// The span of the submitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitter: Option<TraceContext>,
    /// The span of the request, if an observer exports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<TraceContext>,
}

impl RequestTrace {
    /// Whether the request belongs to no trace.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Creates the span of the request: a child of the submitter's span, or the first span of a trace. An unsampled
    /// trace gets no spans. A resumed request keeps its span.
    pub fn begin_request(&mut self) {
        let span_id = fastrand::u64(1..);
        if self.request.is_none() {
            self.request = match &self.submitter {
                None => TraceContext::new(fastrand::u128(1..), span_id),
                Some(submitter) if submitter.is_sampled() => submitter.child(span_id),
                Some(_) => None,
            };
        }
    }

    /// Returns the span of an operation of the request: a new child of the span of the request. Without that span,
    /// returns the span of the submitter, so that the trace has no gap.
    pub fn operation(&self) -> Option<TraceContext> {
        match &self.request {
            Some(request) => request.child(fastrand::u64(1..)),
            None => self.submitter.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

    fn submitted(traceparent: &str) -> RequestTrace {
        let submitter = TraceContext::parse(traceparent, "a=1");
        let mut trace = RequestTrace { submitter, request: None };
        trace.begin_request();
        trace
    }

    #[test]
    fn operations_are_children_of_the_request() {
        let trace = submitted(SAMPLED);
        let (request, submitter) = (trace.request.clone().unwrap(), trace.submitter.clone().unwrap());
        let (one, other) = (trace.operation().unwrap(), trace.operation().unwrap());
        assert!([&request, &one, &other].iter().all(|span| span.trace_id() == submitter.trace_id()));
        assert!([&request, &one, &other].iter().all(|span| span.tracestate() == "a=1"));
        let mut ids = [&submitter, &request, &one, &other].map(TraceContext::span_id);
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:x?}");

        let mut resumed = trace.clone();
        resumed.begin_request();
        assert_eq!(resumed, trace);

        let started = submitted("");
        assert!(started.submitter.is_none() && started.request.unwrap().is_sampled());
        // An unsampled trace context is forwarded unchanged.
        let unsampled = submitted(UNSAMPLED);
        assert_eq!((&unsampled.request, unsampled.operation()), (&None, unsampled.submitter.clone()));
    }
}
