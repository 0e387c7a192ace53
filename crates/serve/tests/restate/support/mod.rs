//! Shared code of the tests.

#[path = "../../../../../tests/it/support/ledger.rs"]
pub(crate) mod ledger;
pub(crate) mod project;
