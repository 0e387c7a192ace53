//! `deftool test`: the examples of the specs against their schemas. No model, no script.

use super::args::{TestFormat, TestOptions};
use super::rerun::Rerun;
use super::test_report::{describe, print_json_line, print_results};
use super::test_run::TestRun;
use super::{CliError, Exit, Place, locate};
use crate::project::{Load, LoadOptions, load_specs, resolve_inputs};

pub(super) fn run(options: &TestOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    if options.watch {
        return watch(options, &place);
    }
    let load = load_specs(&resolve_inputs(&options.paths, &place.folder)?, &place.current)?;
    let Some(run) = TestRun::of(&load, options.filter.as_deref()) else {
        return Err(CliError::Usage(nothing_chosen(options.filter.as_deref())));
    };
    print_results(&run, &load.sources, options.format);
    Ok(if run.summary.fails() { Exit::Failed } else { Exit::Clean })
}

fn watch(options: &TestOptions, place: &Place) -> Result<Exit, CliError> {
    let format = options.format;
    if format == TestFormat::Junit {
        let message = "--watch writes human or json; JUnit is one file a run";
        return Err(CliError::Usage(String::from(message)));
    }
    let filter = options.filter.clone();
    let report = move |load: &Load| {
        let Some(run) = TestRun::of(load, filter.as_deref()) else {
            return nothing_chosen(filter.as_deref());
        };
        if format == TestFormat::Json {
            print_json_line(&run, &load.sources);
            return describe(&run.summary);
        }
        print_results(&run, &load.sources, format);
        // It was said.
        String::new()
    };
    Rerun { how: LoadOptions::default(), clears_screen: format == TestFormat::Human, report }
        .watch(&options.paths, place)
}

fn nothing_chosen(filter: Option<&str>) -> String {
    format!("no tool has `{}` in its name", filter.unwrap_or_default())
}
