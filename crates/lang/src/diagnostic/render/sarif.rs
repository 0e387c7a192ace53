//! SARIF 2.1.0, the format of code scanning.
//!
//! Produces one log with one run; the output is deterministic. Sources: OASIS, "Static Analysis Results Interchange
//! Format (SARIF) Version 2.1.0", and GitHub, "SARIF support for code scanning" (docs.github.com, read 2026-11). GitHub
//! requires `ruleId`, `level`, `message.text` and a location with a region. It rejects a run with more than
//! [`MAX_RESULTS`] results. It identifies alerts by the fingerprint `primaryLocationLineHash`, which its upload action
//! computes; the fingerprint here is a different one, for other tools.
//!
//! A finding about a source that is not a file, such as the list of an MCP server, has a logical location.
//!
//! Not included: `uriBaseId` (paths are relative to the directory in which `check` ran, which should be the repository
//! root), times.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Fix, Rule, Severity};
use crate::text::{LineColumn, Location, SourceFile, Sources, Span, fnv1a};

/// GitHub rejects a file with more results in a run.
const MAX_RESULTS: usize = 25_000;

/// Maximum length of a description that GitHub displays, in characters.
const MAX_DESCRIPTION: usize = 1024;

/// A SARIF file.
#[derive(Debug, Serialize)]
pub struct SarifLog {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    invocations: [Invocation; 1],
    column_kind: &'static str,
    results: Vec<SarifResult>,
}

#[derive(Debug, Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    version: &'static str,
    semantic_version: &'static str,
    rules: Vec<SarifRule>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRule {
    id: &'static str,
    name: &'static str,
    short_description: Text,
    full_description: Text,
    help: Help,
    default_configuration: Configuration,
}

#[derive(Debug, Serialize)]
struct Text {
    text: String,
}

#[derive(Debug, Serialize)]
struct Help {
    text: String,
    markdown: String,
}

#[derive(Debug, Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_execution_notifications: Vec<Notification>,
}

#[derive(Debug, Serialize)]
struct Notification {
    level: &'static str,
    message: Text,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    rule_id: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_index: Option<usize>,
    level: &'static str,
    message: Text,
    locations: Vec<SarifLocation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<SarifLocation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixes: Vec<SarifFix>,
    partial_fingerprints: Fingerprints,
}

#[derive(Debug, Serialize)]
struct Fingerprints {
    #[serde(rename = "deftool/v1")]
    deftool: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifLocation {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    physical_location: Option<PhysicalLocation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalLocation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Text>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    region: Region,
}

/// A place in a source that is not a file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    fully_qualified_name: String,
}

#[derive(Debug, Serialize)]
struct ArtifactLocation {
    uri: String,
}

/// Lines and columns start at 1; the end is exclusive.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: usize,
    start_column: usize,
    end_line: usize,
    end_column: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifFix {
    description: Text,
    artifact_changes: [ArtifactChange; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactChange {
    artifact_location: ArtifactLocation,
    replacements: Vec<Replacement>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Replacement {
    deleted_region: Region,
    inserted_content: Text,
}

/// Builds the log of `findings`, with a description of each of `rules` that has a finding.
pub fn sarif_log(findings: &[Diagnostic], sources: &Sources, rules: &[&'static Rule]) -> SarifLog {
    let (findings, left_out) = most_severe(findings);
    let occurring: BTreeSet<&str> = findings.iter().map(|finding| finding.rule.code).collect();
    let rules: Vec<&Rule> = rules.iter().copied().filter(|rule| occurring.contains(rule.code)).collect();
    let indexes: HashMap<&str, usize> =
        rules.iter().enumerate().map(|(index, rule)| (rule.code, index)).collect();
    let mut seen = HashMap::new();
    let results = findings.iter().filter_map(|finding| {
        let file = sources.get(finding.primary.source)?;
        Some(SarifResult {
            rule_id: finding.rule.code,
            rule_index: indexes.get(finding.rule.code).copied(),
            level: finding.severity.as_str(),
            message: text(message(finding)),
            locations: vec![location(file, finding.primary.span)],
            related_locations: related_locations(finding, sources),
            fixes: finding.fix.iter().map(|fix| sarif_fix(file, fix)).collect(),
            partial_fingerprints: fingerprints(finding, file, &mut seen),
        })
    });
    let left_out = (left_out > 0).then(|| Notification {
        level: Severity::Warning.as_str(),
        message: text(format!("{left_out} further results omitted: a run can contain at most {MAX_RESULTS}")),
    });
    let driver = Driver {
        name: "deftool",
        version: env!("CARGO_PKG_VERSION"),
        semantic_version: env!("CARGO_PKG_VERSION"),
        rules: rules.iter().map(|rule| sarif_rule(rule)).collect(),
    };
    let run = Run {
        tool: Tool { driver },
        invocations: [Invocation {
            execution_successful: true,
            tool_execution_notifications: left_out.into_iter().collect(),
        }],
        column_kind: "unicodeCodePoints",
        results: results.collect(),
    };
    SarifLog { schema: "https://json.schemastore.org/sarif-2.1.0.json", version: "2.1.0", runs: [run] }
}

/// Selects the most severe findings, up to the limit of a run, in their original order. Also returns the number of
/// omitted findings.
fn most_severe(findings: &[Diagnostic]) -> (Vec<&Diagnostic>, usize) {
    let mut order: Vec<(usize, &Diagnostic)> = findings.iter().enumerate().collect();
    order.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.severity));
    order.truncate(MAX_RESULTS);
    order.sort_by_key(|(index, _)| *index);
    (order.into_iter().map(|(_, finding)| finding).collect(), findings.len().saturating_sub(MAX_RESULTS))
}

fn sarif_rule(rule: &Rule) -> SarifRule {
    let explanation = rule.explanation();
    let prose = explanation.split("```").next().unwrap_or_default();
    let prose = prose.strip_prefix(rule.summary()).unwrap_or(prose).trim();
    let prose = if prose.is_empty() { rule.summary() } else { prose };
    SarifRule {
        id: rule.code,
        name: rule.name,
        short_description: text(rule.summary().to_owned()),
        full_description: text(prose.chars().take(MAX_DESCRIPTION).collect()),
        help: Help { markdown: with_captions(&explanation), text: explanation },
        default_configuration: Configuration { level: rule.severity.as_str() },
    }
}

/// Adds captions to code blocks. The last word of a block's info string gives its purpose, but viewers do not display
/// it.
fn with_captions(explanation: &str) -> String {
    let mut captioned = String::with_capacity(explanation.len());
    for line in explanation.lines() {
        let info = line.strip_prefix("```").unwrap_or_default();
        let language = info.split_whitespace().next().unwrap_or_default();
        if info.ends_with(" fails") {
            let _ = write!(captioned, "Found in:\n\n```{language}\n");
        } else if info.ends_with(" repaired") {
            let _ = write!(captioned, "Repaired:\n\n```{language}\n");
        } else {
            captioned.extend([line, "\n"]);
        }
    }
    captioned
}

/// Returns the message, the label and the notes, one per line.
fn message(finding: &Diagnostic) -> String {
    let mut lines = vec![finding.message.as_str()];
    lines.extend(finding.label.as_deref());
    lines.extend(finding.notes.iter().map(String::as_str));
    lines.join("\n")
}

fn text(text: String) -> Text {
    // `[text](target)` is a link in a message, and a message may quote arbitrary text.
    Text { text: text.replace("](", "] (") }
}

fn related_locations(finding: &Diagnostic, sources: &Sources) -> Vec<SarifLocation> {
    let labels = finding.labels.iter().enumerate();
    let located = labels.filter_map(|(index, label)| {
        let Location { source, span } = label.location;
        let at = location(sources.get(source)?, span);
        Some(SarifLocation { id: Some(index), message: Some(text(label.message.clone())), ..at })
    });
    located.collect()
}

fn location(file: &SourceFile, span: Span) -> SarifLocation {
    let physical_location = file
        .is_file()
        .then(|| PhysicalLocation { artifact_location: artifact(file), region: region(file, span) });
    let logical_location = (!file.is_file()).then(|| LogicalLocation {
        name: file.place(span).map(|place| place.tool.to_string()),
        fully_qualified_name: file.position(span),
    });
    SarifLocation {
        id: None,
        physical_location,
        logical_locations: logical_location.into_iter().collect(),
        message: None,
    }
}

fn artifact(file: &SourceFile) -> ArtifactLocation {
    ArtifactLocation { uri: uri(&file.name) }
}

fn region(file: &SourceFile, span: Span) -> Region {
    let LineColumn { line: start_line, column: start_column } = file.line_column(span.start);
    let LineColumn { line: end_line, column: end_column } = file.line_column(span.end);
    Region { start_line, start_column, end_line, end_column }
}

/// Converts a path to a URI reference; reserved and invalid bytes are percent-encoded.
fn uri(path: &str) -> String {
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

fn sarif_fix(file: &SourceFile, fix: &Fix) -> SarifFix {
    let replacements = fix.edits.iter().map(|edit| Replacement {
        deleted_region: region(file, edit.span),
        inserted_content: Text { text: edit.replacement.clone() },
    });
    SarifFix {
        description: text(fix.title.clone()),
        artifact_changes: [ArtifactChange {
            artifact_location: artifact(file),
            replacements: replacements.collect(),
        }],
    }
}

/// Returns a fingerprint that is independent of the line number: a hash of the rule, the message and the source line,
/// with a counter for identical findings.
fn fingerprints<'f>(
    finding: &'f Diagnostic,
    file: &'f SourceFile,
    seen: &mut HashMap<(&'f str, u64), usize>,
) -> Fingerprints {
    let line = file.line_text(file.line_column(finding.primary.span.start).line).trim();
    let parts = [finding.rule.code, finding.message.as_str(), line].into_iter();
    let hash = fnv1a(parts.flat_map(|part| part.bytes().chain([0])));
    let count = seen.entry((file.name.as_str(), hash)).and_modify(|count| *count += 1).or_insert(1);
    Fingerprints { deftool: format!("{hash:016x}:{count}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::rules;

    #[test]
    fn converts_paths_to_uris() {
        assert_eq!(uri("specs/a b%.eld"), "specs/a%20b%25.eld");
        assert_eq!(uri("../é.eld"), "../%C3%A9.eld");
        assert_eq!(uri("c:d.eld"), "c%3Ad.eld", "a colon would make it a scheme");
        assert_eq!(uri("/tmp/x#1.eld"), "file:///tmp/x%231.eld");
    }

    #[test]
    fn keeps_the_most_severe_findings() {
        let mut sources = Sources::new();
        let source = sources.add(SourceFile::new("a.eld", "(a)\n"));
        let at = Location { source, span: Span::at(0) };
        let mut findings = vec![Diagnostic::new(&rules::UNCLOSED, at, "x"); MAX_RESULTS + 3];
        for finding in findings.iter_mut().take(MAX_RESULTS) {
            finding.severity = Severity::Note;
        }
        let log = sarif_log(&findings, &sources, &[&rules::UNCLOSED]);
        let results = &log.runs[0].results;
        assert_eq!(results.len(), MAX_RESULTS);
        assert!(results[MAX_RESULTS - 3..].iter().all(|result| result.level == "error"));
        let notification = &log.runs[0].invocations[0].tool_execution_notifications[0].message.text;
        assert!(notification.starts_with("3 further results"), "{notification}");
        assert_eq!(results[0].partial_fingerprints.deftool.split(':').next_back(), Some("1"));
        assert_eq!(results[1].partial_fingerprints.deftool.split(':').next_back(), Some("2"));
    }

    #[test]
    fn fingerprints_do_not_depend_on_line_numbers() {
        let fingerprint = |text: &str| {
            let mut sources = Sources::new();
            let source = sources.add(SourceFile::new("a.eld", text));
            let at = Location { source, span: Span::at(text.find("(a").unwrap()) };
            let log = sarif_log(&[Diagnostic::new(&rules::UNCLOSED, at, "x")], &sources, &[]);
            log.runs[0].results[0].partial_fingerprints.deftool.clone()
        };
        assert_eq!(fingerprint("(a\n"), fingerprint("\n; é\n   (a\n(b)"));
        assert_ne!(fingerprint("(a\n"), fingerprint("(a b\n"));
    }

    #[test]
    fn messages_contain_no_links() {
        assert_eq!(text(String::from("`[x](http://y)`")).text, "`[x] (http://y)`");
    }
}
