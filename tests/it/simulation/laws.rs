//! What must hold in every world.

/// One law. [`super::faults`] shows of each that it can be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Law {
    /// Every request ends, and at no time later than its timers allow.
    Ends,
    /// No more requests than slots; one is refused only when all are taken; every slot is given back, at once.
    Slots,
    /// A slot is kept back where a request was given up before its first token, and no other; until the server shows an
    /// idle one, or its time is over.
    Drains,
    /// The tool budget is never overshot, and is told unit by unit.
    Budget,
    /// What is told of a request's text only grows.
    Grows,
    /// Nothing changes after the end.
    Settled,
    /// The text events put together are the outcome's text, which is what came without whole directives.
    Text,
    /// What came is kept.
    Raw,
    /// Every exit call of a judged reply is a signal, in order; no signal is invented. Likewise its token counts.
    Signals,
    /// No call is executed twice, without approval, beside others unless it may, after the end; no exit call ever.
    Once,
    /// Every body holds a valid conversation: system messages first, each call answered in order by its own result, good
    /// ids.
    History,
    /// A turn has the newest tools when it begins, and its calls run with those.
    Pinned,
    /// Retries come before the first byte of an answer and not before the time, are counted, and send the same again.
    Retry,
    /// What is told of a request at any time agrees with its events.
    States,
    /// Events come in an order that makes sense: `submitted` first, `finished` last.
    Order,
    /// A restart fails who has asked, and nobody else; what the submitter ends was canceled.
    Restart,
    /// So many results are kept and no more.
    Kept,
    /// When all is over, no task is left.
    Leaves,
    /// A request ends as its script says.
    Verdict,
    /// A recording played again tells the same.
    Replays,
}

impl Law {
    pub(super) const ALL: [Self; 20] = [
        Self::Ends,
        Self::Slots,
        Self::Drains,
        Self::Budget,
        Self::Grows,
        Self::Settled,
        Self::Text,
        Self::Raw,
        Self::Signals,
        Self::Once,
        Self::History,
        Self::Pinned,
        Self::Retry,
        Self::States,
        Self::Order,
        Self::Restart,
        Self::Kept,
        Self::Leaves,
        Self::Verdict,
        Self::Replays,
    ];
}

/// A law that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) law: Law,
    pub(super) how: String,
}
