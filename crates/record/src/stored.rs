//! What stored data may decide when it is used again.
//!
//! Stored data has no authority: a file may restore what happened; what may happen next is computed from the command
//! line, the current project and the trust store. Journals, recordings and sessions may come from another computer or
//! another user, or be older than the project.

/// What a stored field may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// It restores what happened or what was asked for, such as messages, results and the time.
    Restores,
    /// It can only add a limit: the stricter of stored and current applies.
    Limits,
    /// It names something that is used only if the user trusts it, like the same name in a spec.
    NeedsTrust,
    /// It decides nothing. The current value is used.
    Nothing,
}

/// A file with stored data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredFile {
    /// A journal of `--journal`, and the steps that Restate stores.
    Journal,
    /// A recording of `--record`.
    Recording,
    /// A session of `deftool chat` and `deftool acp`.
    Session,
}

use Authority::{Limits, NeedsTrust, Nothing, Restores};

/// What each field of each file may decide. A field is `Type.field`; `Type.Variant` stands for all fields of a variant
/// that are not listed.
pub const STORED_FIELDS: [(StoredFile, &[(&str, Authority)]); 3] = [
    (
        StoredFile::Journal,
        &[
            // The request with its context: the columns of the tables.
            ("request.number", Restores),
            ("request.id", Restores),
            ("request.state", Restores),
            ("entry.request", Restores),
            ("entry.number", Restores),
            ("entry.at_ms", Restores),
            // Compared with the current project, which the command line selects.
            ("JournalContext.project", Nothing),
            // Selects one of the workers of the current project.
            ("JournalContext.worker", Restores),
            ("JournalContext.endpoint", NeedsTrust),
            ("JournalContext.model", Restores),
            ("JournalContext.params", Restores),
            // Only reported.
            ("JournalContext.tools", Nothing),
            ("Session.request_id", Restores),
            ("Session.job_name", Restores),
            ("Session.worker", Nothing),
            ("Session.conversation", Restores),
            ("Session.url", Nothing),
            ("Session.api", Nothing),
            ("Session.model", Nothing),
            ("Session.server", Nothing),
            ("Session.body_fallbacks", Nothing),
            ("Session.parallel_tool_calls", Nothing),
            ("Session.submitted_at_ms", Restores),
            ("Session.zone", Restores),
            ("Session.local_time", Restores),
            ("Session.id_seed", Restores),
            ("Session.engine", Nothing),
            ("Session.trace", Restores),
            ("RequestOptions.model", Restores),
            ("RequestOptions.system_prompt", Restores),
            ("RequestOptions.params", Restores),
            // A subset of the tools of the worker.
            ("RequestOptions.tools", Limits),
            ("RunConfig.worker", Nothing),
            ("RunConfig.model", Nothing),
            ("RunConfig.url", Nothing),
            ("RunConfig.system", Nothing),
            ("RunConfig.system_messages", Nothing),
            ("RunConfig.tool_budget", Limits),
            ("RunConfig.budget_unit", Nothing),
            ("RunConfig.fallback", Nothing),
            ("RunConfig.on_invalid_arguments", Nothing),
            // The calls that ended were handled by it.
            ("RunConfig.on_tool_error", Restores),
            // The form of the results of the past part of the conversation.
            ("RunConfig.string_results", Restores),
            ("RunConfig.final_turn", Nothing),
            ("RunConfig.parallel", Nothing),
            ("RunConfig.bios_budget", Nothing),
            ("RunConfig.params", Nothing),
            ("RunConfig.repetition", Nothing),
            // The form of the past part of the conversation.
            ("RunConfig.parallel_tool_calls_supported", Restores),
            ("ReplyState.usage", Restores),
            ("ReplyState.ids", Restores),
            ("ReplyState.raw_text", Restores),
            ("ReplyState.affordable", Limits),
            // Only text of the conversation: the calls run with the arguments of their events.
            ("ReplyState.written", Restores),
            ("ReplyState.first_token_ms", Restores),
            // Goes back only to the server that the command line selects, if it is the one that sent it.
            ("ReplyState.received", Restores),
            ("PlannedCall.detail", Limits),
            ("PlannedCall.kind", Restores),
            ("CallPlan.timeout", Limits),
            ("CallPlan.needs_approval", Limits),
            ("CallPlan.effect", Limits),
            // The form of the results of the past part of the conversation.
            ("CallPlan.text_result", Restores),
            ("JournalEntry.call_id", Nothing),
            ("JournalEntry.log", Nothing),
            ("Event.Submitted", Restores),
            ("Event.TurnStarted", Restores),
            ("Event.TurnStarted.tools", Nothing),
            ("Event.TurnStarted.budget_left", Nothing),
            ("Event.Text", Restores),
            ("Event.Reasoning", Restores),
            // Validated again before it runs.
            ("Event.ToolCall", Restores),
            ("Event.ArgumentsRepaired", Nothing),
            ("Event.Approval", Restores),
            ("Event.Approval.answer", Nothing),
            ("Event.ToolStarted", Restores),
            ("Event.ToolFinished", Restores),
            ("Event.Signal", Restores),
            ("Event.Budget", Limits),
            ("Event.Retry", Nothing),
            ("Event.Reloaded", Nothing),
            ("Event.Resumed", Restores),
            ("Event.Warning", Nothing),
            ("Event.Finished", Restores),
        ],
    ),
    (
        StoredFile::Recording,
        &[
            // A replay has no server: the recording restores its replies, and what the request depended on.
            ("Session.request_id", Restores),
            ("Session.job_name", Restores),
            // Selects one of the workers of the current project.
            ("Session.worker", Restores),
            ("Session.conversation", Restores),
            ("Session.url", Restores),
            ("Session.api", Restores),
            ("Session.model", Restores),
            ("Session.server", Restores),
            ("Session.body_fallbacks", Restores),
            ("Session.parallel_tool_calls", Restores),
            ("Session.submitted_at_ms", Restores),
            ("Session.zone", Restores),
            ("Session.local_time", Restores),
            ("Session.id_seed", Restores),
            ("Session.engine", Nothing),
            ("Session.trace", Nothing),
            ("RequestOptions.model", Restores),
            ("RequestOptions.system_prompt", Restores),
            ("RequestOptions.params", Restores),
            ("RequestOptions.tools", Limits),
            ("Line.Session.version", Restores),
            ("Line.Request", Restores),
            ("Line.Response", Restores),
            ("Line.Data", Restores),
            ("Line.End", Restores),
            ("Line.NoConnection", Restores),
            ("Line.ToolStarted", Restores),
            ("Line.ToolFinished", Restores),
            ("Line.Log", Nothing),
            // A recorded refusal refuses. A recorded approval runs no tool: the call returns its recorded result.
            ("Line.Approval", Restores),
            ("Line.Approval.answer", Limits),
            ("Line.Reloaded", Restores),
            ("Line.Finished", Restores),
            ("Stopped.at_ms", Restores),
            ("Stopped.failure", Restores),
            ("Stopped.in_queue", Restores),
        ],
    ),
    (
        StoredFile::Session,
        &[
            ("Line.Chat.version", Restores),
            ("Line.Chat.created_at_ms", Nothing),
            ("Line.Chat.project", Nothing),
            ("Line.Chat.worker", Nothing),
            ("Line.Chat.model", Nothing),
            ("Line.Message", Restores),
            ("Line.Rewind", Restores),
            ("Line.Event", Restores),
            ("Line.System", Restores),
            ("Line.Model", Restores),
        ],
    ),
];
