//! Specs: tools, exit tools and workers, lowered from syntax trees.
//!
//! Input is the text of one file; output is its [`Definitions`] and findings. A tool with an error is kept and marked
//! as invalid, so that its name is available to later checks. This module reads no files and no scripts.

mod ask;
mod bios;
mod command;
pub(crate) mod confirm;
mod definitions;
mod dialect;
mod file_kind;
pub(crate) mod form;
mod format;
mod home_folder;
mod host_grant;
mod json;
pub(crate) mod keywords;
mod lower;
mod moved;
mod nearest;
mod org;
mod preview;
pub mod reference;
pub mod rules;
pub(crate) mod schema;
mod selection;
mod tool;
mod tool_forms;
mod units;
mod value;
mod worker;

pub use ask::{Ask, ExpectedCall, ExpectedReply, PastCall, Pattern, PatternKind};
pub use bios::{BiosPiece, Placeholder, bios_pieces};
pub use command::{
    BEGINS_WITH_DASH, CommandInput, FilledCommand, Placeholder as CommandPlaceholder, Template, ToolCommand,
    UnusableValue,
};
pub use confirm::Confirm;
pub(crate) use confirm::testable_members;
pub use definitions::{Definitions, McpServer, McpTransport, ProjectSettings};
pub use dialect::{DIALECTS, DialectSpec};
pub use file_kind::FileKind;
pub use form::{form_of_calls, form_of_tool};
pub use format::{format, format_generated};
pub use home_folder::{HomeFolder, UnknownHomeFolder};
pub use host_grant::{HostGrant, InvalidHostGrant, host_grant};
pub use json::{Json, JsonKind, Member, is_same};
pub(crate) use json::{members_to_map, same_key};
pub(crate) use lower::lower_tool;
pub use lower::{
    is_reserved_param, is_spec_form, lower, lower_selected, lower_unknown, read_dialects, tabled_plists,
};
pub use nearest::{advice_on_name, nearest};
pub use preview::{
    ASKS as ASKS_PREVIEW, DIALECTS as DIALECTS_PREVIEW, PREVIEWS, PreviewFeature, PreviewProblem,
    PreviewState, preview_problem,
};
pub use rules::invalid_name::is_tool_name;
pub use selection::ToolSelection;
pub use tool::{
    Argument, Effect, Include, Origin, PathBase, Permissions, SampleCall, TargetOverride, Tool, ToolKind,
};
pub use tool_forms::{ToolForm, ToolForms, Wrapper};
pub use units::parse_duration;
pub use value::ToolValueError;
pub use worker::{
    Api, BiosBudget, BiosSource, BudgetUnit, DEFAULT_MAX_RESULT, Fallback, OnFailure, ServerSpec,
    StringResults, SystemMessages, Timers, WorkerSpec,
};
