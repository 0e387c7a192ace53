//! `check --select`, `--ignore` and `--baseline`: the findings to report and fix.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::Args;
use deftool_lang::diagnostic::Rule;
use deftool_lang::diagnostic::render::json_report;
use deftool_project::{Load, rules};
use serde_json::Value;

use crate::cli::options::unknown_rule;
use crate::cli::outcome::CliError;

// The findings to report and fix.
#[derive(Debug, Clone, Default, Args)]
pub(in crate::cli) struct SelectionOptions {
    /// Report only these rules: codes, prefixes such as DT2, or names
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(in crate::cli) select: Vec<String>,
    /// Do not report these rules
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(in crate::cli) ignore: Vec<String>,
    /// Report only findings that are not in FILE, the output of an earlier `check --json`
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub(in crate::cli) baseline: Option<PathBuf>,
}

/// A finding without its position, which changes with every edit: file, code and message.
type Identity = (String, String, String);

/// Selects findings.
pub(in crate::cli) struct Selection {
    select: Vec<String>,
    ignore: Vec<String>,
    /// The number of known findings with the same identity.
    known: HashMap<Identity, usize>,
}

impl Selection {
    /// # Errors
    /// If a rule is unknown, or the baseline is not readable.
    pub(in crate::cli) fn of(options: &SelectionOptions, current: &Path) -> Result<Self, CliError> {
        for pattern in options.select.iter().chain(&options.ignore) {
            check_pattern(pattern)?;
        }
        let known = match &options.baseline {
            Some(path) => read_baseline(&current.join(path))?,
            None => HashMap::new(),
        };
        Ok(Self { select: options.select.clone(), ignore: options.ignore.clone(), known })
    }

    /// Removes all other findings from `load`.
    pub(in crate::cli) fn apply(&self, load: &mut Load) {
        let is_match =
            |rule: &Rule, pattern: &String| rule.code.starts_with(pattern.as_str()) || rule.name == pattern;
        load.findings.retain(|finding| {
            let is_selected =
                self.select.is_empty() || self.select.iter().any(|pattern| is_match(finding.rule, pattern));
            is_selected && !self.ignore.iter().any(|pattern| is_match(finding.rule, pattern))
        });
        if self.known.is_empty() {
            return;
        }
        let report = json_report(&load.findings, &load.sources).findings.into_iter();
        let mut identities = report.map(|finding| (finding.file, finding.rule.to_owned(), finding.message));
        let mut known = self.known.clone();
        load.findings.retain(|_| {
            let left = identities.next().and_then(|identity| known.get_mut(&identity));
            let is_known = left.as_ref().is_some_and(|left| **left > 0);
            if let Some(left) = left {
                *left = left.saturating_sub(1);
            }
            !is_known
        });
    }
}

/// Checks that a pattern selects at least one rule.
fn check_pattern(pattern: &str) -> Result<(), CliError> {
    let all = rules::all();
    let is_known = |rule: &&Rule| rule.name == pattern || rule.code.starts_with(pattern);
    if pattern.starts_with("DT") && all.iter().any(is_known) || all.iter().any(|rule| rule.name == pattern) {
        return Ok(());
    }
    Err(unknown_rule(pattern))
}

fn read_baseline(path: &Path) -> Result<HashMap<Identity, usize>, CliError> {
    let invalid = |why: String| CliError::Usage(format!("--baseline {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| invalid(format!("cannot be read: {error}")))?;
    let report: Value = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    if !report["findings"].is_array() {
        return Err(invalid(String::from("expected the output of `deftool check --json`")));
    }
    let mut known = HashMap::new();
    for identity in identities_of(&report) {
        *known.entry(identity).or_default() += 1;
    }
    Ok(known)
}

/// Returns the identities of the findings of a JSON report.
fn identities_of(report: &Value) -> Vec<Identity> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().into_iter().flatten();
    findings
        .map(|finding| (text(&finding["file"]), text(&finding["rule"]), text(&finding["message"])))
        .collect()
}
