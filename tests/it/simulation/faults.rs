//! Ways in which the world lies to the laws, or cheats the worker: a law that cannot fail holds nothing.

use super::laws::Law;
use super::{Options, play};

/// One lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A reader gets the last event a day late.
    EndLate,
    LeakSlot,
    /// It is told that nothing is kept back.
    HideDrains,
    /// The budget is told smaller than it is.
    Overspend,
    /// A status says less text than before, now and then.
    ShrinkText,
    /// A status changes after the end.
    MoveOn,
    /// A reader misses a text event.
    LoseText,
    /// The transport loses a frame of text.
    LoseBytes,
    LoseSignal,
    /// A call reaches its runner twice.
    RunTwice,
    /// A body lacks the answer to its last call.
    Orphan,
    /// The source gives the tools of before.
    StaleTools,
    /// A retry after text.
    LateRetry,
    /// A status says `running` while a tool runs.
    SayRunning,
    EndTwice,
    /// A request that the restart ended says that it was canceled.
    CallRestartCancel,
    /// No record is ever forgotten.
    Hoard,
    /// A task that never ends.
    Linger,
    /// Who completed has failed.
    Misjudge,
    /// A replay lacks the end.
    ForgeReplay,
}

/// Every fault and the law that it breaks.
const BREAKS: [(Fault, Law); 20] = [
    (Fault::EndLate, Law::Ends),
    (Fault::LeakSlot, Law::Slots),
    (Fault::HideDrains, Law::Drains),
    (Fault::Overspend, Law::Budget),
    (Fault::ShrinkText, Law::Grows),
    (Fault::MoveOn, Law::Settled),
    (Fault::LoseText, Law::Text),
    (Fault::LoseBytes, Law::Raw),
    (Fault::LoseSignal, Law::Signals),
    (Fault::RunTwice, Law::Once),
    (Fault::Orphan, Law::History),
    (Fault::StaleTools, Law::Pinned),
    (Fault::LateRetry, Law::Retry),
    (Fault::SayRunning, Law::States),
    (Fault::EndTwice, Law::Order),
    (Fault::CallRestartCancel, Law::Restart),
    (Fault::Hoard, Law::Kept),
    (Fault::Linger, Law::Leaves),
    (Fault::Misjudge, Law::Verdict),
    (Fault::ForgeReplay, Law::Replays),
];

#[test]
fn every_law_can_be_broken_and_notices() {
    for law in Law::ALL {
        let (fault, _) = BREAKS.into_iter().find(|(_, broken)| *broken == law).expect("a fault for each law");
        let options = Options { fault: Some(fault), ..Options::default() };
        // A lie may break several laws; the first that notices is told.
        let mut noticed = (0..200).filter_map(|seed| play(seed, options).broken).map(|broken| broken.law);
        assert!(noticed.any(|noticed| noticed == law), "{fault:?} does not break {law:?} in 200 worlds");
    }
}
