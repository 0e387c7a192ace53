//! JSON Schema of tools: what each API is sent, and what the model's arguments are held against.
//!
//! [`emit`] makes the JSON of a [`Target`]; [`check_tool`] says what is wrong with a schema; [`compile_tool`] makes the
//! [`ToolEntry`] that a request holds: the
//! definition to send and the validator for the calls that come back. [`Importer`] is the way back from definitions to
//! tools, [`emit_gptel`] the one to Emacs.
//!
//! No target changes a schema silently: its [`claims`] say what it does with each keyword, who enforces it then and where
//! that was read; [`check_target`] makes findings of them. [`restore`] undoes what strict mode asks for.

mod breach;
mod circles;
mod compile;
mod confirm;
mod ecma;
mod examples;
mod fuzz;
mod gptel;
mod import;
mod judge;
mod locate;
mod plain;
mod pointer;
mod references;
pub mod rules;
mod strict_reply;
mod target;
mod tool_set;
mod validate;
mod walk;

pub use breach::{Breach, breaches};
pub use compile::{check_tool, compile_tool, compile_tool_for};
pub use confirm::{Conditions, Confirmation};
pub use examples::{Example, Expected, Refusal, try_examples};
pub use fuzz::{Fuzzer, Wrong, shrink};
pub use gptel::emit_gptel;
pub use import::{Import, ImportFormat, Importer};
pub use strict_reply::restore;
pub use target::{
    Held, Target, check_count, check_target, check_tools, claims, emit, emit_definition, losses,
    strict_parameters,
};
pub use tool_set::{ToolEntry, ToolSet};
pub use validate::{ArgumentValidator, SchemaError, Violation};

pub use crate::spec::ToolKind;
