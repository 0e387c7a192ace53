//! The output format of `check --format json`.

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Severity, Summary};
use crate::text::{LineColumn, Sources, Span};

/// The whole output.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct JsonReport {
    /// Every finding, in source order within a file.
    pub findings: Vec<JsonFinding>,
    /// The number of findings of each severity.
    pub summary: Summary,
}

/// One finding. Lines and columns count from 1, columns in characters, ends are exclusive.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS), ts(optional_fields))]
pub struct JsonFinding {
    /// The rule's code, `DT107`.
    pub rule: &'static str,
    /// The rule's name, `stray-colon`.
    pub name: &'static str,
    /// `error`, `warning` or `note`.
    pub severity: Severity,
    /// One clause that describes the problem.
    pub message: String,
    /// The file as the user named it, or the name of another source.
    pub file: String,
    /// The name of the tool, if the source is not a file but the list of an MCP server. Lines are those of this list in
    /// indented JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// JSON pointer of the value in `tool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Line of the first character.
    pub line: usize,
    /// Column of the first character.
    pub column: usize,
    /// Line of the end.
    pub end_line: usize,
    /// Column after the last character.
    pub end_column: usize,
    /// Additional notes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "definitions", ts(as = "Option<_>", optional))]
    pub notes: Vec<String>,
    /// The fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<JsonFix>,
}

/// A fix.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct JsonFix {
    /// An imperative description.
    pub title: String,
    /// Whether `--fix` applies it, because it certainly keeps the intended meaning.
    pub safe: bool,
    /// Replacements in the finding's file.
    pub edits: Vec<JsonEdit>,
}

/// One replacement.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct JsonEdit {
    /// Line of the first character replaced.
    pub line: usize,
    /// Column of the first character replaced.
    pub column: usize,
    /// Line of the end.
    pub end_line: usize,
    /// Column after the last character replaced.
    pub end_column: usize,
    /// The new text.
    pub replacement: String,
}

/// Builds the report of `findings`.
pub fn json_report(findings: &[Diagnostic], sources: &Sources) -> JsonReport {
    JsonReport {
        findings: findings.iter().map(|finding| json_finding(finding, sources)).collect(),
        summary: Summary::of(findings),
    }
}

fn json_finding(finding: &Diagnostic, sources: &Sources) -> JsonFinding {
    let file = sources.get(finding.primary.source);
    let position = |span: Span| {
        let nowhere = LineColumn { line: 1, column: 1 };
        file.map_or((nowhere, nowhere), |file| (file.line_column(span.start), file.line_column(span.end)))
    };
    let (start, end) = position(finding.primary.span);
    let fix = finding.fix.as_ref().map(|fix| JsonFix {
        title: fix.title.clone(),
        safe: fix.is_safe,
        edits: fix
            .edits
            .iter()
            .map(|edit| {
                let (start, end) = position(edit.span);
                JsonEdit {
                    line: start.line,
                    column: start.column,
                    end_line: end.line,
                    end_column: end.column,
                    replacement: edit.replacement.clone(),
                }
            })
            .collect(),
    });
    let place = file.and_then(|file| file.place(finding.primary.span));
    JsonFinding {
        rule: finding.rule.code,
        name: finding.rule.name,
        severity: finding.severity,
        message: finding.message.clone(),
        file: file.map_or_else(String::new, |file| file.name.clone()),
        tool: place.map(|place| place.tool.to_string()),
        pointer: place.map(|place| place.pointer.clone()),
        line: start.line,
        column: start.column,
        end_line: end.line,
        end_column: end.column,
        notes: finding.notes.clone(),
        fix,
    }
}
