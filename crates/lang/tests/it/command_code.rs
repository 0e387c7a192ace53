//! Placeholders in code of `:command`: a table of commands with the severity of their finding.

use deftool_lang::diagnostic::Severity;
use deftool_lang::spec::{FileKind, lower};
use deftool_lang::syntax::parse;
use deftool_lang::text::{SourceFile, Sources};

const COMMANDS: &str = include_str!("../data/command_code.txt");

/// Returns the rule of the findings about code in `command`, and their greatest severity.
fn reported(command: &str) -> Result<&'static str, String> {
    let text = format!(
        "(deftool :name \"t\" :description \"Do it.\" :command {command}
          :args ((:name \"x\" :type string :description \"It.\") (:name \"y\" :type string :description \"It.\")))"
    );
    let id = Sources::new().add(SourceFile::new("t.eld", text.as_str()));
    let (tree, mut findings) = parse(id, &text);
    findings.extend(lower(id, &text, &tree, FileKind::Specs).1);
    findings.retain(|finding| finding.rule.name != "unused-argument");
    let is_known = |(name, severity)| match (name, severity) {
        ("placeholder-in-code", Severity::Error) => Ok("error"),
        ("placeholder-in-option", Severity::Warning) => Ok("warning"),
        (name, severity) => Err(format!("{name} {severity:?}")),
    };
    match findings.as_slice() {
        [] => Ok("none"),
        [finding] => is_known((finding.rule.name, finding.severity)),
        [first, second] if first.rule == second.rule => is_known((first.rule.name, first.severity)),
        more => Err(format!("{} findings", more.len())),
    }
}

#[test]
fn code_is_recognized_by_the_word() {
    let mut expected = "";
    let (mut count, mut wrong) = (0, Vec::new());
    for line in COMMANDS.lines().filter(|line| !line.is_empty() && !line.starts_with(';')) {
        if let Some(heading) = line.strip_prefix("# ") {
            expected = heading;
            continue;
        }
        count += 1;
        let found = reported(line);
        if found.as_deref() != Ok(expected) {
            wrong.push(format!("{line}: expected {expected}, found {found:?}"));
        }
    }
    assert!(count > 150 && wrong.is_empty(), "{count} commands, wrong:\n{}", wrong.join("\n"));
}
