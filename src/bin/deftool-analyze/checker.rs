//! Luau's type checker with the definitions of a project, and the unit that it checked.
//!
//! Based on the sources of luau-analysis 0.739 (Luau's analyser in Rust), November 2026.

use deftool_script::{Analysed, Definitions, ScriptUnit};
use luau_analysis::module::ScopeId;
use luau_analysis::{DefinitionEnvironment, Frontend, FrontendOptions, NullConfigResolver};
use luau_config::Mode;

use crate::annotate::Annotated;
use crate::files::{Files, TESTS};

pub(crate) type Checker = Frontend<Files, NullConfigResolver>;

/// A checked unit.
pub(crate) struct Checked {
    pub(crate) unit: ScriptUnit,
    pub(crate) annotated: Annotated,
}

/// Creates a checker with the definitions of a project.
///
/// # Errors
/// If the checker cannot start or rejects the definitions.
pub(crate) fn new_checker(definitions: &Definitions) -> Analysed<Checker> {
    let mut config = NullConfigResolver::default();
    config.default_config.mode = Mode::Strict;
    let options = FrontendOptions { retain_full_type_graphs: true, ..FrontendOptions::default() };
    let mut checker = Frontend::new(Files::default(), config, options);
    let failed = |error| format!("the checker cannot start: {error}");
    checker.register_builtin_globals(DefinitionEnvironment::Globals).map_err(failed)?;
    let scripts = checker.global_scope(DefinitionEnvironment::Globals);
    load(&mut checker, scripts, &definitions.scripts)?;
    let tests = checker.add_environment(TESTS);
    load(&mut checker, tests, &definitions.tests)?;
    Ok(checker)
}

/// Loads a definition file into a scope.
fn load(checker: &mut Checker, scope: ScopeId, text: &str) -> Analysed<()> {
    let loaded = checker
        .load_definition_file(scope, text, "@deftool", false)
        .map_err(|error| format!("the checker cannot read the definitions: {error}"))?;
    if loaded.success {
        return Ok(());
    }
    let syntax = loaded.source_module.parse_errors.first().map(|error| format!("{error:?}"));
    let model = loaded.semantic_model(checker);
    let types = model.as_ref().and_then(|model| {
        let view = model.module();
        view.errors().first().map(|error| model.error_message(error).to_string())
    });
    let why = syntax.or(types).unwrap_or_else(|| String::from("unknown error"));
    Err(format!("the checker rejects the definitions: {why}"))
}
