//! Faults that the simulation injects to prove that every invariant check can fail.

use super::invariants::Invariant;
use super::{Options, simulate};

/// An injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A reader receives the last event a day late.
    EndLate,
    LeakSlot,
    /// The number of draining slots is reported as 0.
    HideDrains,
    /// The reported budget is too small.
    Overspend,
    /// A status sometimes reports less text than before.
    ShrinkText,
    /// A status changes after the end.
    ChangeAfterEnd,
    /// A reader loses a text event.
    LoseText,
    /// The transport loses a text frame.
    LoseBytes,
    LoseSignal,
    /// A call is executed twice.
    RunTwice,
    /// A body lacks the result of its last call.
    LoseToolResult,
    /// The tool source returns the previous tools.
    StaleTools,
    /// A retry after text.
    LateRetry,
    /// A status reports `running` while a tool runs.
    ReportRunning,
    EndTwice,
    /// A request that a restart ended is reported as canceled.
    ReportRestartAsCancel,
    /// Results are never discarded.
    KeepEveryResult,
    /// A task that never ends.
    LeakTask,
    /// A completed request is reported as failed.
    ReportFailure,
    /// A replay lacks its last event.
    TruncateReplay,
}

/// Every fault and the invariant that it violates.
const BREAKS: [(Fault, Invariant); 20] = [
    (Fault::EndLate, Invariant::Deadline),
    (Fault::LeakSlot, Invariant::Slots),
    (Fault::HideDrains, Invariant::Drains),
    (Fault::Overspend, Invariant::Budget),
    (Fault::ShrinkText, Invariant::Monotonic),
    (Fault::ChangeAfterEnd, Invariant::EndIsFinal),
    (Fault::LoseText, Invariant::Text),
    (Fault::LoseBytes, Invariant::RawText),
    (Fault::LoseSignal, Invariant::Signals),
    (Fault::RunTwice, Invariant::ExecutedOnce),
    (Fault::LoseToolResult, Invariant::Conversation),
    (Fault::StaleTools, Invariant::PinnedTools),
    (Fault::LateRetry, Invariant::Retry),
    (Fault::ReportRunning, Invariant::Status),
    (Fault::EndTwice, Invariant::EventOrder),
    (Fault::ReportRestartAsCancel, Invariant::Restart),
    (Fault::KeepEveryResult, Invariant::ResultLimit),
    (Fault::LeakTask, Invariant::NoTaskLeft),
    (Fault::ReportFailure, Invariant::Outcome),
    (Fault::TruncateReplay, Invariant::Replay),
];

#[test]
fn every_invariant_check_detects_its_fault() {
    for invariant in Invariant::ALL {
        let (fault, _) = BREAKS
            .into_iter()
            .find(|(_, violation)| *violation == invariant)
            .expect("a fault for each invariant");
        let options = Options { fault: Some(fault), ..Options::default() };
        // A fault may violate several invariants. Only the first violation is reported.
        let mut noticed = (0..200)
            .filter_map(|seed| simulate(seed, options).violation)
            .map(|violation| violation.invariant);
        assert!(
            noticed.any(|noticed| noticed == invariant),
            "{fault:?} does not violate {invariant:?} in 200 runs"
        );
    }
}
