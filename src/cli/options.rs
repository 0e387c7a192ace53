//! Parsers of option values that several commands take.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use deftool_lang::schema::Target;

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

pub(in crate::cli) fn target() -> impl TypedValueParser<Value = Target> {
    one_of(Target::ALL.map(|target| (target.as_str(), target)))
}

/// Parses a duration such as `250ms` or `1.5m`.
pub(in crate::cli) fn parse_duration(text: &str) -> Result<Duration, String> {
    deftool_lang::spec::parse_duration(text)
        .ok_or_else(|| String::from("expected a number and a unit, as in 250ms, 5s or 1.5m"))
}
