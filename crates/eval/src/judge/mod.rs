//! The judge: compares the calls of a reply with those that an ask expects.
//!
//! Three scores are independent, because their remedies differ:
//!
//! | score | is true if | a failure points to |
//! |---|---|---|
//! | choice | the reply has the right calls, in the right number and order, or none | names, descriptions, overlapping tools |
//! | validity | each call is valid: known tool, readable arguments, no violation of the schema | the schema |
//! | arguments | the arguments of the calls of the right tools match | descriptions of arguments |
//!
//! The schema decides about arguments that the ask does not state: the default of the property passes, any other value is
//! an extra argument. An argument that is stated but absent in the call has its default.
//!
//! Each expected call is paired with a call of the same tool. Arguments are compared in pairs only, so a missing or an
//! extra call fails the choice and leaves the arguments true if a pair matches. Without a pair nothing can be compared,
//! and the arguments fail, too. An ask that expects no call has no arguments that could fail.

mod assignment;
mod choice;
mod comparison;
mod problem;

use deftool_lang::schema::{ApplicableSchemas, ToolEntry, ToolSet};
use deftool_lang::spec::{Ask, ExpectedCall, ExpectedReply};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use choice::{Choice, Confusion, confusions};
pub use problem::{Difference, Problem};

use assignment::assign;
use comparison::{Validators, compare};

/// Maximum number of problems of a verdict, and of differences of a call. A reply could have thousands.
const MAX_PROBLEMS: usize = 20;

/// A call of the judged reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedCall {
    /// The tool, by the name that the engine resolved.
    pub tool: String,
    /// The arguments that the tool would get: after repairs, and without the nulls of strict mode.
    pub arguments: Value,
    /// Why the call is invalid: unknown tool, unreadable arguments, violations of the schema.
    #[serde(default)]
    pub error: Option<String>,
    /// Number of repairs that made the call valid.
    #[serde(default)]
    pub repairs: u32,
    /// Whether the model wrote the call as text.
    #[serde(default)]
    pub written_as_text: bool,
}

/// The result of a comparison of a reply with an ask.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether the reply calls the right tools.
    pub choice: bool,
    /// Whether all calls are valid.
    pub validity: bool,
    /// Whether the arguments of the right calls match.
    pub arguments: bool,
    /// What is wrong, at most twenty: first calls, then their validity, then their arguments.
    pub problems: Vec<Problem>,
    /// The expected and the called tools, for [`confusions`].
    pub choices: Vec<Choice>,
}

impl Verdict {
    /// Returns whether all scores are true.
    pub fn passes(&self) -> bool {
        self.choice && self.validity && self.arguments
    }
}

/// Compares `calls`, those of a reply, with what `ask` expects. `tools` are those that the model could call.
pub fn judge(ask: &Ask, calls: &[ObservedCall], tools: &ToolSet) -> Verdict {
    match &ask.expected {
        ExpectedReply::NoCall => judge_no_call(calls.iter().enumerate()),
        // An invalid call of another tool does not matter, either.
        ExpectedReply::NoCallOf(tool) => {
            judge_no_call(calls.iter().enumerate().filter(|(_, call)| call.tool == *tool))
        }
        ExpectedReply::Calls { calls: expected, is_ordered } => {
            judge_calls(expected, *is_ordered, calls, tools)
        }
    }
}

/// Judges a reply that should have none of `calls`, each with its index in the reply.
fn judge_no_call<'c>(calls: impl Iterator<Item = (usize, &'c ObservedCall)> + Clone) -> Verdict {
    let extra =
        calls.clone().map(|(index, call)| Problem::ExtraCall { tool: call.tool.clone(), call: index });
    let invalid = calls.clone().filter_map(|(index, call)| invalid_call(index, call));
    let mut choices: Vec<Choice> = calls.map(|(_, call)| Choice::new(None, Some(&call.tool))).collect();
    let choice = choices.is_empty();
    if choice {
        choices.push(Choice::new(None, None));
    }
    Verdict {
        choice,
        validity: invalid.clone().next().is_none(),
        arguments: true,
        problems: extra.chain(invalid).take(MAX_PROBLEMS).collect(),
        choices,
    }
}

fn judge_calls(
    expected: &[ExpectedCall],
    is_ordered: bool,
    calls: &[ObservedCall],
    tools: &ToolSet,
) -> Verdict {
    let validators = Validators::of(expected);
    let compare = |expected: &ExpectedCall, call: &ObservedCall, limit: usize, found: Option<&mut _>| {
        let parameters = tools.get(&call.tool).and_then(ToolEntry::parameters).unwrap_or(&Value::Null);
        let schemas = ApplicableSchemas::of(parameters);
        compare(expected, &call.arguments, &schemas, &validators, limit, found)
    };
    let pairs = assign(expected, calls, is_ordered, MAX_PROBLEMS, |expected, call, limit| {
        (expected.tool.value == call.tool).then(|| compare(expected, call, limit, None))
    });
    let mut mismatches = Vec::new();
    for (expected, index) in expected.iter().zip(&pairs) {
        let Some((index, call)) = index.and_then(|index| Some((index, calls.get(index)?))) else { continue };
        let mut found = Vec::new();
        compare(expected, call, MAX_PROBLEMS, Some(&mut found));
        mismatches.extend(found.into_iter().map(|difference| Problem::Argument {
            tool: call.tool.clone(),
            call: index,
            difference,
        }));
    }
    let (choices, mut problems) = judge_choice(expected, is_ordered, calls, &pairs);
    let choice = problems.is_empty();
    let mut invalid =
        calls.iter().enumerate().filter_map(|(index, call)| invalid_call(index, call)).peekable();
    let validity = invalid.peek().is_none();
    let arguments = mismatches.is_empty() && pairs.iter().any(Option::is_some);
    problems.extend(invalid);
    problems.extend(mismatches);
    problems.truncate(MAX_PROBLEMS);
    Verdict { choice, validity, arguments, problems, choices }
}

/// Returns the expected and the called tools, and the calls that are missing, extra or in the wrong order.
fn judge_choice(
    expected: &[ExpectedCall],
    is_ordered: bool,
    calls: &[ObservedCall],
    pairs: &[Option<usize>],
) -> (Vec<Choice>, Vec<Problem>) {
    let mut is_paired = vec![false; calls.len()];
    for index in pairs.iter().flatten() {
        if let Some(is_paired) = is_paired.get_mut(*index) {
            *is_paired = true;
        }
    }
    let missing: Vec<&str> = expected
        .iter()
        .zip(pairs)
        .filter(|(_, index)| index.is_none())
        .map(|(call, _)| call.tool.value.as_str())
        .collect();
    let extra: Vec<(usize, &str)> = calls
        .iter()
        .enumerate()
        .zip(is_paired)
        .filter(|(_, is_paired)| !is_paired)
        .map(|((index, call), _)| (index, call.tool.as_str()))
        .collect();
    let right = expected.iter().zip(pairs).filter(|(_, index)| index.is_some());
    let mut choices: Vec<Choice> =
        right.map(|(call, _)| Choice::new(Some(&call.tool.value), Some(&call.tool.value))).collect();
    // A call of the wrong tool counts as confused with the call that is missing.
    choices.extend(
        (0..missing.len().max(extra.len()))
            .map(|at| Choice::new(missing.get(at).copied(), extra.get(at).map(|(_, tool)| *tool))),
    );
    if is_ordered && !missing.is_empty() && has_same_tools(&missing, &extra) {
        let expected = expected.iter().map(|call| call.tool.value.clone()).collect();
        let found = calls.iter().map(|call| call.tool.clone()).collect();
        return (choices, vec![Problem::WrongOrder { expected, found }]);
    }
    let missing = missing.into_iter().map(|tool| Problem::MissingCall { tool: tool.to_owned() });
    let extra = extra.into_iter().map(|(call, tool)| Problem::ExtraCall { tool: tool.to_owned(), call });
    let problems = missing.chain(extra).take(MAX_PROBLEMS).collect();
    (choices, problems)
}

fn has_same_tools(missing: &[&str], extra: &[(usize, &str)]) -> bool {
    let mut missing = missing.to_vec();
    let mut extra: Vec<&str> = extra.iter().map(|(_, tool)| *tool).collect();
    missing.sort_unstable();
    extra.sort_unstable();
    missing == extra
}

fn invalid_call(index: usize, call: &ObservedCall) -> Option<Problem> {
    let error = call.error.clone()?;
    Some(Problem::InvalidCall { tool: call.tool.clone(), call: index, error })
}
