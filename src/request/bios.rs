//! The engine's own system message.
//!
//! It holds what a model needs to know of the loop and nothing of the job, and no secret. It is made again for
//! every turn; with a frozen time, only the line of the budget changes.

use std::fmt::Write as _;

use super::budget::BudgetUnit;
use crate::schema::{ToolKind, ToolSet};

/// Which part of the BIOS is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BiosPart {
    /// All of it.
    Whole,
    /// Without the line that changes: must be the same text for every turn.
    Head,
    /// Only the line that changes.
    Tail,
}

/// What a BIOS may tell.
#[derive(Debug)]
pub struct BiosContext<'a> {
    /// Which part is asked for.
    pub part: BiosPart,
    /// The worker's name.
    pub worker: &'a str,
    /// The local time, frozen at submit.
    pub local_time: &'a str,
    /// The zone's name, frozen at submit.
    pub zone: &'a str,
    /// Units of the tool budget left.
    pub budget_left: u32,
    /// What a unit pays for.
    pub budget_unit: BudgetUnit,
    /// Whether the convention for calls written as text must be told.
    pub call_convention: bool,
    /// The tools of the turn.
    pub tools: &'a ToolSet,
    /// Whether the turn offers only the exit tools.
    pub exit_tools_only: bool,
}

/// Makes the BIOS. An empty text sends none.
pub trait BiosProvider {
    /// The part that `context` asks for. The same context must give the same text.
    fn bios(&self, context: &BiosContext<'_>) -> String;
}

/// The default BIOS; its format is stable and called `bios-v1`.
#[derive(Debug, Clone, Copy, Default)]
pub struct BiosV1;

impl BiosProvider for BiosV1 {
    fn bios(&self, context: &BiosContext<'_>) -> String {
        let unit = match context.budget_unit {
            BudgetUnit::Iteration => "iterations",
            BudgetUnit::Call => "calls",
        };
        let budget = format!("Normal tool {unit} left: {}", context.budget_left);
        if context.part == BiosPart::Tail {
            return budget;
        }
        let mut bios = format!(
            "bios-v1\nWorker: {}\nTime at submit: {} ({})\n",
            context.worker, context.local_time, context.zone
        );
        if context.part == BiosPart::Whole {
            bios.push_str(&budget);
            bios.push('\n');
        }
        bios.push_str(match context.budget_unit {
            BudgetUnit::Iteration => {
                "Normal tools run and their results come back to you. A reply that calls normal tools uses one \
                 iteration, however many it calls. When none is left, answer without them."
            }
            BudgetUnit::Call => {
                "Normal tools run and their results come back to you. Every call of a normal tool uses one call. \
                 When none is left, answer without them."
            }
        });
        let exit: Vec<&str> = context
            .tools
            .iter()
            .filter(|tool| tool.kind == ToolKind::Exit)
            .map(|tool| tool.name.as_str())
            .collect();
        if !exit.is_empty() {
            let _ = write!(
                bios,
                "\nExit tools are one-way signals: they are recorded, give no result and cost nothing. Exit tools: {}.",
                exit.join(", ")
            );
        }
        if context.call_convention && !context.tools.is_empty() {
            bios.push_str(
                "\nTo call a tool, write one line of JSON with nothing else on it: {\"tool\": \"NAME\", \"arguments\": {…}}\nTools:",
            );
            // The head must not change when the budget is spent, so every tool is told in every turn.
            for tool in context.tools.iter() {
                let _ = write!(bios, "\n{}", tool.definition.get("function").unwrap_or(&tool.definition));
            }
        }
        bios
    }
}
