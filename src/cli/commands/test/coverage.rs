//! `--coverage`: what no ask touches.

use std::fmt::Write;

use deftool_lang::spec::Json;
use deftool_lang::text::{Location, Sources, one_line};
use deftool_project::{AskCoverage, Touched, Untouched};
use serde_json::Value;

use super::run::SourceRange;
use crate::cli::terminal::output::paint;

/// What asks touch, with the locations of what they do not.
pub(super) struct CoverageReport {
    pub(super) untouched: Vec<UntouchedPart>,
    pub(super) tools: Touched,
    pub(super) arguments: Touched,
    pub(super) values: Touched,
}

/// A tool, an argument of a touched tool, or a value of a touched argument.
pub(super) struct UntouchedPart {
    /// The location of its definition.
    pub(super) at: SourceRange,
    pub(super) tool: String,
    pub(super) argument: Option<String>,
    pub(super) value: Option<Value>,
}

impl CoverageReport {
    pub(super) fn of(coverage: &AskCoverage<'_>, sources: &Sources) -> Self {
        let AskCoverage { untouched, tools, arguments, values } = coverage;
        let part = |Untouched { tool, argument, value }: &Untouched<'_>| {
            let span = value.map(|value| value.span).or(argument.map(|argument| argument.name.span));
            let at = Location { source: tool.source, span: span.unwrap_or(tool.name.span) };
            UntouchedPart {
                at: SourceRange::of(at, sources),
                tool: tool.name.value.clone(),
                argument: argument.map(|argument| argument.name.value.clone()),
                value: value.map(Json::to_value),
            }
        };
        let untouched = untouched.iter().map(part).collect();
        Self { untouched, tools: *tools, arguments: *arguments, values: *values }
    }

    /// Returns one line for each part, as in `MISS get_weather unit "celsius" specs/weather.eld:8:44`.
    pub(super) fn lines(&self) -> String {
        let mut text = String::new();
        for UntouchedPart { at, tool, argument, value } in &self.untouched {
            let argument = argument.as_ref().map_or_else(String::new, |name| format!(" {name}"));
            let value = value.as_ref().map_or_else(String::new, |value| format!(" {value}"));
            let rest = one_line(format!("{tool}{argument}{value} {at}"));
            let _ = writeln!(text, "{} {rest}", paint("MISS", anstyle::AnsiColor::Yellow));
        }
        text
    }

    /// Describes the numbers, as in `asks touch 1 of 2 tools, 1 of 3 arguments, 0 of 2 values`.
    pub(super) fn describe(&self) -> String {
        let part = |Touched { touched, total }: Touched, what: &str| format!("{touched} of {total} {what}");
        format!(
            "asks touch {}, {}, {}",
            part(self.tools, "tools"),
            part(self.arguments, "arguments"),
            part(self.values, "values")
        )
    }
}
