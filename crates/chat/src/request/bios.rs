//! The system message that the engine adds.
//!
//! It describes the tool loop to the model. It contains nothing about the job and no secrets. It is created for every
//! turn. The variable lines (the time of the request and the budget of the turn) form its tail. Each turn sends them
//! after everything that earlier turns sent, so that the server's prompt cache remains valid.

use std::fmt::Write as _;

use deftool_lang::schema::{ToolKind, ToolSet};
use deftool_lang::spec::{BiosPiece, BudgetUnit, Placeholder, bios_pieces};

/// The requested part of the BIOS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BiosPart {
    /// The complete BIOS.
    Whole,
    /// The constant lines: the same text for every request and turn.
    Head,
    /// The variable lines.
    Tail,
}

/// The input of a BIOS provider.
#[derive(Debug)]
pub struct BiosContext<'a> {
    /// The requested part.
    pub part: BiosPart,
    /// The worker's name.
    pub worker: &'a str,
    /// The local time at submission.
    pub local_time: &'a str,
    /// The name of the time zone at submission.
    pub zone: &'a str,
    /// Remaining units of the tool budget.
    pub budget_left: u32,
    /// The unit of the budget.
    pub budget_unit: BudgetUnit,
    /// Whether the convention for calls written as text must be included.
    pub call_convention: bool,
    /// The tools of the turn.
    pub tools: &'a ToolSet,
    /// Whether the turn offers only the exit tools.
    pub exit_tools_only: bool,
}

/// Creates the BIOS. An empty BIOS is not sent.
pub trait BiosProvider: std::fmt::Debug + Send + Sync {
    /// Returns the part that `context` requests. The same context must produce the same text.
    fn bios(&self, context: &BiosContext<'_>) -> String;
}

/// The default BIOS. Its stable format is called `bios-v1`.
#[derive(Debug, Clone, Copy, Default)]
pub struct BiosV1;

/// A BIOS from a user's text with [`Placeholder`]s. Lines with `{budget}` or `{time}` are the variable lines. If the
/// call convention is required and has no placeholder, it is appended.
#[derive(Debug, Clone)]
pub struct BiosTemplate {
    /// The text.
    pub text: String,
}

impl BiosProvider for BiosV1 {
    fn bios(&self, context: &BiosContext<'_>) -> String {
        match context.part {
            BiosPart::Whole => format!("{}\n{}", head(context), tail(context)),
            BiosPart::Head => head(context),
            BiosPart::Tail => tail(context),
        }
    }
}

fn head(context: &BiosContext<'_>) -> String {
    let mut lines = vec![
        String::from("bios-v1"),
        format!("Worker: {}", context.worker),
        String::from(match context.budget_unit {
            BudgetUnit::Iteration => {
                "Normal tools run and their results come back to you. A reply that calls normal tools uses one \
                 iteration, however many it calls."
            }
            BudgetUnit::Call => {
                "Normal tools run and their results come back to you. Every call of a normal tool uses one call."
            }
        }),
    ];
    let exit = exit_tools(context);
    if !exit.is_empty() {
        lines.push(format!(
            "Exit tools are one-way signals: a call is recorded, returns no result and costs nothing. When you are about \
             to finish, call the exit tool that fits in the same reply as your final text. Exit tools: {exit}."
        ));
    }
    if context.call_convention {
        lines.push(convention(context));
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

fn tail(context: &BiosContext<'_>) -> String {
    let advice = if context.budget_left == 0 { "; answer without them." } else { "" };
    format!(
        "Time at submit: {} ({})\nNormal tool {} left: {}{advice}",
        context.local_time,
        context.zone,
        unit(context),
        context.budget_left
    )
}

/// Returns the budget that the variable lines of a `bios-v1` report, and its unit. Reads what [`BiosV1`] writes, for
/// programs that have only the sent messages.
pub fn budget_in_bios(text: &str) -> Option<(u32, BudgetUnit)> {
    text.lines().rev().find_map(|line| {
        let (unit, left) = line.strip_prefix("Normal tool ")?.split_once(" left: ")?;
        let unit = match unit {
            "iterations" => BudgetUnit::Iteration,
            "calls" => BudgetUnit::Call,
            _ => return None,
        };
        Some((left.split(';').next()?.parse().ok()?, unit))
    })
}

impl BiosProvider for BiosTemplate {
    fn bios(&self, context: &BiosContext<'_>) -> String {
        let convention = if context.call_convention { convention(context) } else { String::new() };
        let holds =
            |text: &str, wanted| bios_pieces(text).any(|piece| piece == BiosPiece::Placeholder(wanted));
        let changes = |line| holds(line, Placeholder::Budget) || holds(line, Placeholder::Time);
        let mut lines: Vec<String> = self
            .text
            .lines()
            .filter(|line| match context.part {
                BiosPart::Whole => true,
                BiosPart::Head => !changes(line),
                BiosPart::Tail => changes(line),
            })
            .map(|line| filled(line, context, &convention))
            .collect();
        let has_place = holds(&self.text, Placeholder::CallConvention);
        if context.part != BiosPart::Tail && !has_place && !convention.is_empty() {
            lines.push(convention);
        }
        lines.join("\n").trim().to_owned()
    }
}

/// Replaces the placeholders in `line`. Inserted text is not scanned again.
fn filled(line: &str, context: &BiosContext<'_>, convention: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for piece in bios_pieces(line) {
        match piece {
            BiosPiece::Text(plain) => text.push_str(plain),
            BiosPiece::Unknown(word) => text.extend(["{", word, "}"]),
            BiosPiece::Placeholder(Placeholder::Worker) => text.push_str(context.worker),
            BiosPiece::Placeholder(Placeholder::Time) => text.push_str(context.local_time),
            BiosPiece::Placeholder(Placeholder::Zone) => text.push_str(context.zone),
            BiosPiece::Placeholder(Placeholder::Budget) => text.push_str(&context.budget_left.to_string()),
            BiosPiece::Placeholder(Placeholder::ExitTools) => text.push_str(&exit_tools(context)),
            BiosPiece::Placeholder(Placeholder::CallConvention) => text.push_str(convention),
        }
    }
    text
}

fn unit(context: &BiosContext<'_>) -> &'static str {
    match context.budget_unit {
        BudgetUnit::Iteration => "iterations",
        BudgetUnit::Call => "calls",
    }
}

fn exit_tools(context: &BiosContext<'_>) -> String {
    let exit = context.tools.iter().filter(|tool| tool.kind == ToolKind::Exit);
    exit.map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Describes how to write a call, and all tools: a template without tool support does not show them to the model. All
/// tools are included in every turn, because the head must not change when the budget is exhausted.
fn convention(context: &BiosContext<'_>) -> String {
    if context.tools.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "To call a tool, write one line of JSON with nothing else on it: {\"tool\": \"NAME\", \"arguments\": {…}}\nTools:",
    );
    for tool in context.tools.iter() {
        let _ = write!(text, "\n{}", tool.definition.get("function").unwrap_or(&tool.definition));
    }
    text
}
