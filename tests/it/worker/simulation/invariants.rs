//! The invariants that must hold in every simulated run.

/// An invariant. [`super::faults`] proves for each invariant that its check can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Invariant {
    /// Every request ends, no later than its timers allow.
    Deadline,
    /// At most as many requests run as there are slots. A request is rejected only if all slots are in use. Every slot
    /// is freed immediately at the end of its request.
    Slots,
    /// A slot drains only if its request was abandoned before the first token. The drain ends when the server reports
    /// an idle slot, or after a time limit.
    Drains,
    /// The tool budget is never exceeded, and is reported unit by unit.
    Budget,
    /// The reported text of a request only grows.
    Monotonic,
    /// Nothing changes after the end of a request.
    EndIsFinal,
    /// The concatenated text events are the outcome's text: the received text without complete directives.
    Text,
    /// The raw text contains everything that was received.
    RawText,
    /// The signals are the exit calls of complete replies, in order. The token counts are those of complete replies,
    /// too.
    Signals,
    /// A call is executed at most once, never without a required approval, never concurrently unless allowed, and never
    /// after the end. Exit calls are never executed.
    ExecutedOnce,
    /// Every body contains a valid conversation: system messages first, each call followed in order by its result, and
    /// valid ids.
    Conversation,
    /// A turn uses the newest tools at its start, and its calls run with the same tools.
    PinnedTools,
    /// A retry comes before the first byte of an answer, waits for the required time, is counted, and sends the same
    /// request.
    Retry,
    /// The status of a request agrees with its events at any time.
    Status,
    /// The events have a valid order: `submitted` is first, `finished` is last.
    EventOrder,
    /// A restart fails the requests with an open exchange and no others. A request that the submitter ends is canceled.
    Restart,
    /// The number of kept results is limited.
    ResultLimit,
    /// No task is left at the end of the run.
    NoTaskLeft,
    /// A request has an outcome that its script allows.
    Outcome,
    /// The replay of a recording has the same events.
    Replay,
}

impl Invariant {
    pub(super) const ALL: [Self; 20] = [
        Self::Deadline,
        Self::Slots,
        Self::Drains,
        Self::Budget,
        Self::Monotonic,
        Self::EndIsFinal,
        Self::Text,
        Self::RawText,
        Self::Signals,
        Self::ExecutedOnce,
        Self::Conversation,
        Self::PinnedTools,
        Self::Retry,
        Self::Status,
        Self::EventOrder,
        Self::Restart,
        Self::ResultLimit,
        Self::NoTaskLeft,
        Self::Outcome,
        Self::Replay,
    ];
}

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) invariant: Invariant,
    pub(super) how: String,
}
