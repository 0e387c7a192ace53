//! JSON Schemas of tools: the schemas sent to each API, and the validation of the model's arguments.
//!
//! [`emit`] produces the JSON for a [`Target`]. [`check_tool`] checks a schema. [`compile_tool`] produces the
//! [`ToolEntry`] of a request: the definition to send and the validator for the resulting calls. [`Importer`] converts
//! definitions back to tools, [`check_list`] checks those of other programs, and [`emit_gptel`] converts tools to Emacs Lisp. [`to_current_draft`] and
//! [`offered_parameters`] adapt the schemas of other programs.
//!
//! No target changes a schema silently: its [`support`] table lists the support level of each keyword, the component
//! that enforces it, and the source of that information. [`check_target`] reports each keyword without full support.
//! [`restore`] undoes the changes that strict mode requires. [`repair_text`] and [`ToolEntry::accept_repaired`] read
//! arguments that a model or a client damaged without loss.

mod applicable;
mod arguments;
mod asks;
mod compare;
mod compile;
mod confirm;
mod cost;
mod cycles;
mod ecma;
mod examples;
mod foreign;
mod generate;
mod gptel;
mod import;
mod locate;
mod plain;
mod pointer;
mod problems;
mod references;
mod repair;
pub mod rules;
mod strict_reply;
mod target;
mod tool_set;
mod validate;
mod value_checker;
mod walk;

pub use applicable::ApplicableSchemas;
pub use arguments::{Arguments, NotAnObject};
pub use asks::{AskChecker, check_ask_schemas, repeated_asks};
pub use compare::{Change, Impact, compare_definitions};
pub use compile::{check_tool, compile_tool, compile_tool_for};
pub use confirm::{Conditions, Confirmation};
pub use examples::{Example, Expected, Refusal, try_examples};
pub use foreign::{offered_parameters, to_current_draft};
pub use generate::generate_arguments;
pub use gptel::{emit_gptel, lost_in_gptel};
pub use import::{Import, ImportFormat, Importer, check_list, list_places, of_json, repeated_member};
pub use repair::{Repair, RepairKind, before_control_token, repair_text};
pub use strict_reply::restore;
pub use target::{
    Limitation, Target, accepts_type, check_count, check_target, check_tools, emit, emit_definition,
    limitations, strict_parameters, support, takes_any_number,
};
pub use tool_set::{Accepted, LocatedViolation, ToolEntry, ToolSet, locate_violations};
pub use validate::{ArgumentValidator, SchemaError, Violation};
pub use walk::longest_returned_string;

pub use crate::spec::ToolKind;
