//! The requests of the simulation in `tests/it/worker/simulation`, without what depends on time.

// The checks of the simulation are not used here.
#![allow(dead_code)]

#[path = "../../../../../tests/it/worker/simulation/answer.rs"]
mod answer;
#[path = "../../../../../tests/it/worker/simulation/dice.rs"]
mod dice;
#[path = "../../../../../tests/it/worker/simulation/plan.rs"]
mod plan;
#[path = "../../../../../tests/it/worker/simulation/refusals.rs"]
mod refusals;
#[path = "../../../../../tests/it/worker/simulation/reply.rs"]
mod reply;
pub(crate) mod scenario;
#[path = "../../../../../tests/it/worker/simulation/script.rs"]
mod script;
#[path = "../../../../../tests/it/worker/simulation/stream.rs"]
mod stream;
#[path = "../../../../../tests/it/worker/simulation/submission.rs"]
mod submission;
#[path = "../../../../../tests/it/worker/simulation/tools.rs"]
mod tools;
#[path = "../../../../../tests/it/worker/simulation/wire.rs"]
mod wire;
