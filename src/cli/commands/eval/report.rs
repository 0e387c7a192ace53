//! The output of `deftool eval` in each format.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::time::Duration;

use deftool_eval::statistics::{Comparison, Interval, Outcome, PassRate};
use deftool_lang::diagnostic::render::{JunitCase, JunitFailure, JunitSuite, junit_xml};
use deftool_lang::spec::Ask;
use deftool_lang::text::{Sources, count, one_line};

use super::EvalFormat;
use super::results::{AskResult, ModelResults, Results};
use crate::cli::terminal::output::{clean, cut, eprint_line, print, print_json, print_styled};

/// Number of asks whose problems are shown.
const MAX_ASKS: usize = 10;
/// Number of problems that are shown of an ask.
const MAX_PROBLEMS: usize = 3;
/// Number of wrong choices of tools that are shown.
const MAX_CONFUSIONS: usize = 5;
/// Maximum length of a shown description, in characters.
const MAX_DESCRIPTION: usize = 200;
/// Maximum length of a shown prompt, in characters.
const MAX_PROMPT: usize = 60;

/// Prints the results. `min`: the lowest share of replies that must pass.
pub(super) fn print_results(results: &Results, format: EvalFormat, min: Option<f64>) {
    match format {
        EvalFormat::Human => print_styled(&human(results, min)),
        EvalFormat::Json => print_json(results, true),
        EvalFormat::Junit => print(&junit_xml(&suites(results))),
        EvalFormat::Markdown => print(&markdown(results)),
    }
    if let Some(stopped) = &results.stopped {
        eprint_line(&format!("stopped: {}", clean(stopped)));
    }
}

/// Reports the asks of a project that a recording lacks.
pub(super) fn eprint_stale(stale: &BTreeSet<usize>, asks: &[&Ask], sources: &Sources) {
    for ask in stale.iter().filter_map(|index| asks.get(*index)) {
        eprint_line(&format!(
            "skipped {}: the recording has no reply to this ask with the current tools",
            sources.describe(ask.location())
        ));
    }
}

/// Returns the report for people.
fn human(results: &Results, min: Option<f64>) -> String {
    let mut text = String::new();
    for model in &results.models {
        let _ = writeln!(text, "{}: {}", clean(&model.model), headline(model, results.runs));
        text += &scores(model);
        for ask in model.asks.iter().filter(|ask| ask.tally.passes < ask.tally.runs).take(MAX_ASKS) {
            text += &failed_ask(ask);
        }
        let failed = model.asks.iter().filter(|ask| ask.tally.passes < ask.tally.runs).count();
        if failed > MAX_ASKS {
            let _ = writeln!(text, "  and {}", count(failed - MAX_ASKS, "other ask"));
        }
        text += &notes(model, results.runs);
        if let Some(comparison) = &model.comparison {
            let _ = writeln!(text, "  baseline: {}", compared(comparison));
        }
        if let (Some(min), Some(passed)) = (min, model.passed) {
            let verb = if passed.rate < min { "below" } else { "not below" };
            let _ = writeln!(text, "  {} is {verb} the minimum of {}", percent(passed.rate), percent(min));
        }
    }
    text
}

/// Describes the replies that pass, as in `41 of 50 replies pass, 82 % (68 to 91 %)`.
fn headline(model: &ModelResults, runs: u32) -> String {
    let Some(PassRate { rate, interval, asks, .. }) = model.passed else {
        return String::from("no reply to judge");
    };
    let passes: u32 = model.asks.iter().map(|ask| ask.tally.passes).sum();
    let passing = passing(passes, model.scores.replies);
    let each = if runs > 1 { format!(", {}", count(asks, "ask")) } else { String::new() };
    format!("{passing}{each}, {} ({})", percent(rate), range(interval))
}

/// Returns the line of the scores.
fn scores(model: &ModelResults) -> String {
    let scores = &model.scores;
    if scores.replies == 0 {
        return String::new();
    }
    let of = |passed: u32| percent(f64::from(passed) / f64::from(scores.replies));
    format!(
        "  right tools {}, valid calls {}, right arguments {}\n",
        of(scores.choice),
        of(scores.validity),
        of(scores.arguments)
    )
}

/// Returns the lines of an ask that does not always pass.
fn failed_ask(ask: &AskResult) -> String {
    let mut text =
        format!("  {}/{} {} {}\n", ask.tally.passes, ask.tally.runs, clean(&ask.at), shown_prompt(ask));
    let mut problems: Vec<(&String, &usize)> = ask.problems.iter().collect();
    problems.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (problem, count) in problems.iter().take(MAX_PROBLEMS) {
        let _ = writeln!(text, "      {count} × {}", one_line(clean(problem)));
    }
    if problems.len() > MAX_PROBLEMS {
        let _ = writeln!(
            text,
            "      and {}",
            deftool_lang::text::count(problems.len() - MAX_PROBLEMS, "other problem")
        );
    }
    text
}

fn shown_prompt(ask: &AskResult) -> String {
    format!("\"{}\"", cut(&one_line(clean(&ask.prompt)), MAX_PROMPT))
}

/// Returns what else a person should know about the replies of a model.
fn notes(model: &ModelResults, runs: u32) -> String {
    let mut text = String::new();
    for row in model.confusions.iter().filter(|row| !row.choice.is_right()).take(MAX_CONFUSIONS) {
        let name = |tool: &Option<String>| {
            tool.as_ref().map_or_else(|| String::from("no call"), |tool| format!("`{}`", clean(tool)))
        };
        let (expected, called) = (name(&row.choice.expected), name(&row.choice.called));
        let _ = writeln!(text, "  {} × expected {expected}, got {called}", row.count);
    }
    for tool in &model.confused {
        let description = cut(&one_line(clean(&tool.description)), MAX_DESCRIPTION);
        let _ = writeln!(text, "      `{}`: {description}", clean(&tool.tool));
    }
    let engine = &model.engine;
    for (what, counts) in [("repaired", &engine.repaired), ("written as text", &engine.written_as_text)] {
        if !counts.is_empty() {
            let counts: Vec<String> =
                counts.iter().map(|(tool, count)| format!("`{}` {count}", clean(tool))).collect();
            let _ = writeln!(text, "  calls {what}: {}", counts.join(", "));
        }
    }
    for (warning, count) in &engine.warnings {
        let _ = writeln!(text, "  {count} × warning: {}", one_line(clean(warning)));
    }
    let repeated = model.asks.iter().filter(|ask| ask.distinct == 1 && ask.tally.runs > 1).count();
    if repeated > 0 {
        let _ = writeln!(
            text,
            "  {} got identical replies in all runs: more runs are no more evidence",
            count(repeated, "ask")
        );
    }
    if let Some(all) = model.pass_hat_k.filter(|_| runs > 1) {
        let _ = writeln!(text, "  all of {runs} runs pass: {} of the asks (pass^{runs})", percent(all));
    }
    if model.tokens.prompt > 0 {
        let tokens = &model.tokens;
        let _ = writeln!(
            text,
            "  {} prompt and {} reply tokens, {:.1} s a reply",
            tokens.prompt,
            tokens.completion,
            Duration::from_millis(model.mean_ms).as_secs_f64()
        );
    }
    for (failure, count) in &model.failures {
        let _ = writeln!(text, "  {count} × failed, not counted: {}", one_line(clean(failure)));
    }
    text
}

/// Describes a comparison, as in `cannot tell: +4 % (-6 to +14 %), p = 0.38; 20 asks show a difference of 12 %`.
fn compared(comparison: &Comparison) -> String {
    let Comparison { outcome, difference, interval, p_value, detectable, asks, test: _ } = comparison;
    let outcome = match outcome {
        Outcome::Better => "better",
        Outcome::Worse => "worse",
        Outcome::CannotTell => "cannot tell",
    };
    let signed = |share: f64| format!("{:+.0} %", share * 100.0);
    let power = match detectable {
        Some(share) => format!("{} can show a difference of {}", count(*asks, "ask"), percent(*share)),
        None => format!("{} cannot show a difference; write more", count(*asks, "ask")),
    };
    format!(
        "{outcome}: {} ({} to {}), p = {p_value:.2}; {power}",
        signed(*difference),
        signed(interval.low),
        signed(interval.high)
    )
}

/// Returns the number of replies, as in `2 of 5 replies pass`.
fn passing(passes: u32, replies: u32) -> String {
    format!("{passes} of {replies} {}", if replies == 1 { "reply passes" } else { "replies pass" })
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn range(interval: Interval) -> String {
    format!("{:.0} to {:.0} %", interval.low * 100.0, interval.high * 100.0)
}

/// Returns one table for all models, with the asks as rows.
fn markdown(results: &Results) -> String {
    let mut text = String::from("| ask |");
    for model in &results.models {
        let _ = write!(text, " {} |", cell(&model.model));
    }
    text += "\n|---|";
    text += &"---|".repeat(results.models.len());
    text.push('\n');
    let first = results.models.first().map(|model| model.asks.as_slice()).unwrap_or_default();
    let tally = |ask: &AskResult| format!("{}/{}", ask.tally.passes, ask.tally.runs);
    let tallies_of = |model: &ModelResults| -> HashMap<String, String> {
        model.asks.iter().map(|ask| (ask.at.clone(), tally(ask))).collect()
    };
    let tallies: Vec<_> = results.models.iter().map(tallies_of).collect();
    for ask in first {
        let _ = write!(text, "| {} |", cell(&ask.prompt));
        for tallies in &tallies {
            let shown = tallies.get(&ask.at).map_or("", String::as_str);
            let _ = write!(text, " {shown} |");
        }
        text.push('\n');
    }
    text += "| **all** |";
    for model in &results.models {
        let shown = model.passed.map_or_else(String::new, |passed| {
            format!("{} ({})", percent(passed.rate), range(passed.interval))
        });
        let _ = write!(text, " {shown} |");
    }
    text.push('\n');
    for model in &results.models {
        if let Some(comparison) = &model.comparison {
            let _ = write!(text, "\n{} and the baseline: {}\n", cell(&model.model), compared(comparison));
        }
    }
    text
}

/// Returns text as the cell of a table.
fn cell(text: &str) -> String {
    let text = one_line(clean(text));
    cut(&text, MAX_PROMPT).replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('`', "\\`")
}

/// Returns a suite for each model, with a test for each ask. A test fails if a reply does not pass.
fn suites(results: &Results) -> Vec<JunitSuite> {
    let suite = |model: &ModelResults| JunitSuite {
        file: model.model.clone(),
        cases: model.asks.iter().map(|ask| case(ask, &model.model)).collect(),
    };
    results.models.iter().map(suite).collect()
}

fn case(ask: &AskResult, model: &str) -> JunitCase {
    let shown = passing(ask.tally.passes, ask.tally.runs);
    let failure = (ask.tally.passes < ask.tally.runs).then(|| {
        let problems = ask.problems.iter().map(|(problem, count)| format!("{count} × {problem}\n"));
        JunitFailure { message: shown.clone(), kind: String::from("ask"), text: problems.collect() }
    });
    let name = format!("{model}: {} {}", ask.at, ask.prompt);
    JunitCase { class: "deftool eval", name, failure, output: String::new() }
}
