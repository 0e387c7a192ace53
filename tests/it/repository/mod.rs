//! The repository itself: its documents, examples and architecture.

mod architecture;
mod ci;
mod cycles;
mod docs;
mod examples;
mod readme;
mod reference;
mod schemas;
