//! Options that several commands have, and parsers of option values.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{EnumValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use deftool_lang::schema::Target;
use deftool_lang::spec::advice_on_name;
use deftool_project::rules;

use super::outcome::CliError;

// The option of the commands that use a project.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct ProjectOptions {
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl ProjectOptions {
    /// Returns the folder of `-C`, after or before the command.
    pub(in crate::cli) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }
}

/// The output formats of most commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// Text
    Human,
    /// JSON
    Json,
}

/// The output formats of the commands that follow requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum EventFormat {
    /// Text
    Human,
    /// Events, one JSON object per line
    Json,
}

// The output format. Each `F` has the values `human` and `json`.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct FormatOptions<F: ValueEnum + Clone + Send + Sync + 'static = Format> {
    /// Output format
    #[arg(id = "format", long = "format", value_name = "FORMAT", value_parser = EnumValueParser::<F>::new(),
        default_value = "human", default_value_if("json", "true", "json"))]
    pub(in crate::cli) value: F,
    /// Short form of `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl FormatOptions<Format> {
    pub(in crate::cli) fn is_json(&self) -> bool {
        self.value == Format::Json
    }
}

impl FormatOptions<EventFormat> {
    pub(in crate::cli) fn is_json(&self) -> bool {
        self.value == EventFormat::Json
    }
}

/// Parses one of `choices`: a name and its value.
pub(in crate::cli) fn one_of<T: Copy + Send + Sync + 'static>(
    choices: impl IntoIterator<Item = (&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let choices: Vec<_> = choices.into_iter().collect();
    PossibleValuesParser::new(choices.iter().map(|(name, _)| *name)).try_map(move |given: String| {
        let chosen = choices.iter().find(|(name, _)| *name == given);
        chosen.map(|(_, value)| *value).ok_or("unknown name")
    })
}

/// Returns the error for an unknown rule.
pub(in crate::cli) fn unknown_rule(name: &str) -> CliError {
    let is_code = name.starts_with("DT");
    let known = rules::all().into_iter().map(|rule| if is_code { rule.code } else { rule.name });
    CliError::Usage(format!("unknown rule `{name}`; {}", advice_on_name(name, "rules", known)))
}

pub(in crate::cli) fn target() -> impl TypedValueParser<Value = Target> {
    one_of(Target::ALL.map(|target| (target.as_str(), target)))
}

/// Parses a duration such as `250ms` or `1.5m`.
pub(in crate::cli) fn parse_duration(text: &str) -> Result<Duration, String> {
    deftool_lang::spec::parse_duration(text)
        .ok_or_else(|| String::from("expected a number and a unit, as in 250ms, 5s or 1.5m"))
}
