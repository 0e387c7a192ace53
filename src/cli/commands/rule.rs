//! `deftool rule`: lists the rules of `check`, or explains one.

use clap::Args;
use deftool_lang::diagnostic::{Rule, Severity};
use deftool_project::rules;
use serde::Serialize;

use crate::cli::options::{FormatOptions, unknown_rule};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::terminal::output::{paint, print_json, print_styled};
use crate::cli::terminal::width::{fill, help_columns};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool rule
  deftool rule --all --format json
  deftool rule DT204
  deftool rule unknown-name")]
pub(in crate::cli) struct RuleOptions {
    /// Code or name of the rule to explain [default: list all]
    pub(in crate::cli) rule: Option<String>,
    /// List all rules, as without a rule
    #[arg(long, conflicts_with = "rule")]
    pub(in crate::cli) all: bool,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions,
}

/// A rule in the output of `--json`.
#[derive(Serialize)]
struct RuleJson {
    code: &'static str,
    name: &'static str,
    severity: Severity,
    summary: &'static str,
    /// Markdown.
    explanation: String,
}

pub(in crate::cli) fn run(options: &RuleOptions) -> Result<Exit, CliError> {
    let all = rules::all();
    let Some(wanted) = &options.rule else {
        if options.format.is_json() {
            print_json(&all.into_iter().map(json_of).collect::<Vec<_>>(), true);
        } else {
            print_styled(&table(&all));
        }
        return Ok(Exit::Clean);
    };
    let found = all.iter().find(|rule| rule.code.eq_ignore_ascii_case(wanted) || rule.name == wanted);
    let Some(rule) = found else { return Err(unknown_rule(wanted)) };
    if options.format.is_json() {
        print_json(&json_of(rule), true);
    } else {
        print_styled(&explain(rule));
    }
    Ok(Exit::Clean)
}

fn json_of(rule: &Rule) -> RuleJson {
    RuleJson {
        code: rule.code,
        name: rule.name,
        severity: rule.severity,
        summary: rule.summary(),
        explanation: rule.explanation(),
    }
}

/// Returns one line per rule.
fn table(all: &[&Rule]) -> String {
    let widest = all.iter().map(|rule| rule.name.len()).max().unwrap_or(0);
    let line = |rule: &&Rule| {
        let severity = paint(&format!("{:<7}", rule.severity.as_str()), color_of(rule.severity));
        format!("{}  {:<widest$}  {severity}  {}\n", rule.code, rule.name, rule.summary())
    };
    all.iter().map(line).collect()
}

/// Returns the explanation as plain text, with paragraphs filled. Examples are indented; text in backticks is unchanged.
fn explain(rule: &Rule) -> String {
    let severity = paint(rule.severity.as_str(), color_of(rule.severity));
    let title = format!("{} {}, {severity}: {}\n", rule.code, rule.name, rule.summary());
    let mut lines: Vec<String> = Vec::new();
    let explanation = rule.explanation();
    let mut in_example = false;
    let mut last_kind = "";
    for line in explanation.lines().skip(1) {
        let info: Vec<&str> = line.strip_prefix("```").unwrap_or("").split_whitespace().collect();
        match info.as_slice() {
            _ if in_example && !line.starts_with("```") => lines.push(format!("    {line}")),
            _ if !line.starts_with("```") => match lines.last_mut() {
                Some(paragraph) if !paragraph.is_empty() && !line.is_empty() => {
                    paragraph.extend([" ", line]);
                }
                Some(_) | None => lines.push(line.to_owned()),
            },
            [.., kind] => {
                in_example = true;
                let title = if *kind == "fails" { "This is wrong" } else { "This is right" };
                let title = if *kind == last_kind { "with" } else { title };
                last_kind = kind;
                lines.push(match info.get(1).filter(|_| info.len() > 2) {
                    Some(file) if title == "with" => format!("with {file}:"),
                    Some(file) => format!("{title}, {file}:"),
                    None => format!("{title}:"),
                });
                lines.push(String::new());
            }
            [] => in_example = false,
        }
    }
    let columns = help_columns();
    let is_example = |line: &String| line.starts_with("    ");
    let text = lines
        .iter()
        .map(|line| if is_example(line) { format!("{line}\n") } else { fill("", line, 0, columns) });
    (title + &text.collect::<String>()).trim_end().to_owned() + "\n"
}

fn color_of(severity: Severity) -> anstyle::AnsiColor {
    match severity {
        Severity::Error => anstyle::AnsiColor::Red,
        Severity::Warning => anstyle::AnsiColor::Yellow,
        Severity::Note => anstyle::AnsiColor::Cyan,
    }
}
