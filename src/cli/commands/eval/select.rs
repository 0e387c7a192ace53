//! The models and the asks that are evaluated.

use deftool_lang::schema::ToolSet;
use deftool_lang::spec::{Ask, advice_on_name};
use deftool_project::Load;

use super::trials::{Version, tools_of};
use crate::cli::outcome::CliError;
use crate::cli::terminal::output::{clean, eprint_line};

/// Returns the models of `--model`; without any, that of the worker, as `None`.
///
/// # Errors
/// If one is named twice.
pub(super) fn models(named: &[String]) -> Result<Vec<Option<String>>, CliError> {
    for (index, model) in named.iter().enumerate() {
        if named.iter().take(index).any(|known| known == model) {
            return Err(CliError::Usage(format!("--model: `{}` is named twice", clean(model))));
        }
    }
    let models: Vec<Option<String>> = named.iter().cloned().map(Some).collect();
    Ok(if models.is_empty() { vec![None] } else { models })
}

/// Returns the asks of the named tools, or all. Those whose tools are not offered are reported and left out.
///
/// # Errors
/// If no ask names one of the tools, or if none is left.
pub(super) fn asks<'l>(
    load: &'l Load,
    names: &[String],
    versions: &[(Version, ToolSet)],
) -> Result<Vec<&'l Ask>, CliError> {
    let all = load.asks();
    if all.is_empty() {
        let why = if load.written_asks().next().is_some() {
            "all asks of the project have errors, which `deftool check` reports"
        } else {
            "the project has no asks; add `:asks` to a tool, or write them from a recording with `deftool eval --from FILE`"
        };
        return Err(CliError::Usage(String::from(why)));
    }
    check_names(names, &all)?;
    let is_named = |ask: &&Ask| {
        names.is_empty() || tools_of(ask).iter().any(|tool| names.iter().any(|name| name == tool))
    };
    let is_offered = |name: &str| versions.iter().all(|(_, tools)| tools.get(name).is_some());
    let mut asks = Vec::new();
    for ask in all.into_iter().filter(is_named) {
        match tools_of(ask).into_iter().find(|tool| !is_offered(tool)) {
            None => asks.push(ask),
            Some(missing) => {
                let place = load.sources.describe(ask.location());
                eprint_line(&format!("skipped {place}: the worker does not offer `{}`", clean(missing)));
            }
        }
    }
    if asks.is_empty() {
        return Err(CliError::Usage(String::from("the worker does not offer the tools of the asks")));
    }
    Ok(asks)
}

/// Checks that an ask names each of the tools.
fn check_names(names: &[String], asks: &[&Ask]) -> Result<(), CliError> {
    let mut known: Vec<&str> = asks.iter().flat_map(|ask| tools_of(ask)).collect();
    known.sort_unstable();
    known.dedup();
    let Some(name) = names.iter().find(|name| known.binary_search(&name.as_str()).is_err()) else {
        return Ok(());
    };
    let advice = advice_on_name(name, "tools with asks", known);
    Err(CliError::Usage(clean(&format!("no ask names `{name}`; {advice}"))))
}
