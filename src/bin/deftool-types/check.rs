//! Checks the types of scripts, all with the same definitions.
//!
//! Based on the sources of luau-analysis 0.739 (Luau's analyser in Rust), November 2026.

use std::sync::Arc;

use deftool_script::{Module, TypeCheck, TypeJob, TypeProblem};
use luau_analysis::diagnostics::TypeCheckLimits;
use luau_analysis::frontend::resolver::ModuleInfo;
use luau_analysis::{
    DefinitionEnvironment, FileResolver, Frontend, FrontendOptions, ModuleName, NullConfigResolver,
    SourceCode, SourceCodeType,
};
use luau_common::BString;
use luau_config::Mode;
use luau_syntax::ast::{AstVisitor, Expression, ExpressionKind, Statement};
use luau_syntax::location::Location;
use luau_syntax::parser::{ParseOptions, ParsedSource};

use crate::annotate::{Annotated, returned_function};
use crate::confidence::KnownTypes;

/// The message for a type function. Type functions are programs that the checker would run.
const TYPE_FUNCTION: &str = "type functions are not run, and so the types of this script are not checked";

pub(crate) type Checker = Frontend<Files, NullConfigResolver>;

/// The checked script and its modules.
#[derive(Default)]
pub(crate) struct Files {
    /// The annotated source of the script.
    text: String,
    job: Option<TypeJob>,
}

impl FileResolver for Files {
    fn read_source(&mut self, name: &ModuleName) -> Option<SourceCode> {
        let (name, job) = (name.to_string(), self.job.as_ref()?);
        let source = if name == job.file {
            BString::from(self.text.as_bytes())
        } else {
            BString::from(&*job.modules.iter().find(|module| module.file == name)?.source)
        };
        Some(SourceCode { source, kind: SourceCodeType::Module })
    }

    fn resolve_module(
        &mut self,
        context: Option<&ModuleInfo>,
        wanted: Expression<'_>,
        _: &TypeCheckLimits,
    ) -> Option<ModuleInfo> {
        let ExpressionKind::String { value, .. } = wanted.kind() else { return None };
        let wanted = std::str::from_utf8(value.as_bytes()).ok()?;
        let module = self.job.as_ref()?.required(&context?.name.to_string(), wanted)?;
        Some(ModuleInfo { name: BString::from(module.file.as_bytes()), optional: false })
    }
}

/// Creates a checker with the type `definitions`.
///
/// # Errors
/// If the checker cannot start or rejects the definitions.
pub(crate) fn new_checker(definitions: &str) -> Result<Checker, String> {
    let mut config = NullConfigResolver::default();
    config.default_config.mode = Mode::Strict;
    let options = FrontendOptions { retain_full_type_graphs: true, ..FrontendOptions::default() };
    let mut checker = Frontend::new(Files::default(), config, options);
    let failed = |error| format!("the checker cannot start: {error}");
    checker.register_builtin_globals(DefinitionEnvironment::Globals).map_err(failed)?;
    let scope = checker.global_scope(DefinitionEnvironment::Globals);
    let loaded = checker.load_definition_file(scope, definitions, "@deftool", false).map_err(failed)?;
    if loaded.success {
        return Ok(checker);
    }
    let syntax = loaded.source_module.parse_errors.first().map(|error| format!("{error:?}"));
    let model = loaded.semantic_model(&checker);
    let types = model.as_ref().and_then(|model| {
        let view = model.module();
        view.errors().first().map(|error| model.error_message(error).to_string())
    });
    let why = syntax.or(types).unwrap_or_default();
    Err(format!("the checker rejects the definitions: {why}"))
}

/// Checks the script of `job` and its modules.
pub(crate) fn check(checker: &mut Checker, job: &TypeJob) -> TypeCheck {
    let Ok(text) = std::str::from_utf8(&job.source) else {
        return TypeCheck::Skipped(String::from("it is not UTF-8"));
    };
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mode = mode_of(text);
    let annotated = match mode {
        Some(Mode::NoCheck) => return TypeCheck::Checked(Vec::new()),
        Some(Mode::Strict | Mode::Nonstrict) | None => Annotated::of(text, &job.parameters),
    };
    let modules = job.modules.iter().map(|module: &Arc<Module>| {
        (module.file.as_str(), String::from_utf8_lossy(&module.source).into_owned())
    });
    let refused = std::iter::once((job.file.as_str(), text.to_owned())).chain(modules);
    if let Some(problem) = refused.into_iter().find_map(|(file, text)| type_function(file, &text)) {
        return TypeCheck::Checked(vec![problem]);
    }
    checker.clear();
    let files = checker.file_resolver_mut();
    files.text.clone_from(&annotated.text);
    files.job = Some(job.clone());
    let name = BString::from(job.file.as_bytes());
    let result = match checker.check(&name, None) {
        Ok(result) => result,
        Err(error) => return TypeCheck::Skipped(error.to_string()),
    };
    let mut problems = Vec::new();
    for file in std::iter::once(&job.file).chain(job.modules.iter().map(|module| &module.file)) {
        let is_script = *file == job.file;
        let Some(model) = checker.semantic_model(&BString::from(file.as_bytes())) else { continue };
        let view = model.module();
        let Some(root) = view.source().map(|source| source.root()) else { continue };
        // Modules have their own mode comment.
        let module = job.modules.iter().find(|module| module.file == *file);
        let requested = module.map_or(mode, |module| mode_of(&String::from_utf8_lossy(&module.source)));
        let known = KnownTypes::of(&model, root, returned_function(root).filter(|_| is_script));
        let column = |line, column| if is_script { annotated.column(line, column) } else { column };
        let mut add = |at: Location, message: &str| {
            let start = column(at.begin.line, at.begin.column) as usize;
            let end = if at.end.line == at.begin.line {
                column(at.end.line, at.end.column) as usize
            } else {
                usize::MAX
            };
            let problem = TypeProblem {
                file: file.clone(),
                line: at.begin.line as usize + 1,
                columns: (start, end),
                message: tidy(message),
            };
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        };
        for error in result.errors.iter().filter(|error| error.module_name == *file.as_str()) {
            let message = model.error_message(error).to_string();
            if requested.is_some() || known.is_certain(error, &message) {
                add(error.location, &message);
            }
        }
        for (at, message) in &known.comparisons {
            add(*at, message);
        }
    }
    problems.sort_by(|one, other| {
        (&one.file, one.line, one.columns).cmp(&(&other.file, other.line, other.columns))
    });
    TypeCheck::Checked(problems)
}

/// Returns a problem for the first type function in `text`.
fn type_function(file: &str, text: &str) -> Option<TypeProblem> {
    #[derive(Default)]
    struct TypeFunctions(Option<Location>);

    impl<'ast> AstVisitor<'ast> for TypeFunctions {
        fn visit_type_function_statement(&mut self, statement: Statement<'ast>) -> bool {
            self.0.get_or_insert(statement.location);
            false
        }
    }

    let parsed = ParsedSource::parse(text, ParseOptions::default()).ok()?;
    let mut found = TypeFunctions::default();
    parsed.root().visit(&mut found);
    let at = found.0?;
    let start = at.begin.column as usize;
    Some(TypeProblem {
        file: file.to_owned(),
        line: at.begin.line as usize + 1,
        columns: (start, start + "type function".len()),
        message: String::from(TYPE_FUNCTION),
    })
}

/// Returns the mode requested by a comment at the top of a script, such as `--!strict`.
fn mode_of(text: &str) -> Option<Mode> {
    let mut comments =
        text.lines().map(str::trim).take_while(|line| line.is_empty() || line.starts_with("--"));
    comments.find_map(|line| match line.strip_prefix("--!")?.trim() {
        "strict" => Some(Mode::Strict),
        "nonstrict" => Some(Mode::Nonstrict),
        "nocheck" => Some(Mode::NoCheck),
        _ => None,
    })
}

/// Shortens a message to one clause and puts names in backticks.
fn tidy(message: &str) -> String {
    let first = message.split("; \n").next().unwrap_or_default();
    let first = first.split("; there is no corresponding").next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    let mut text = words.join(" ").replace('\'', "`");
    // This does not change names, because they are quoted.
    if let Some(letter) = text.get(..1).map(str::to_lowercase) {
        text.replace_range(..1, &letter);
    }
    text
}
