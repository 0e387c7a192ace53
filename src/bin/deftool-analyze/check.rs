//! Type findings.

use deftool_script::{ScriptUnit, TypeProblem};
use luau_analysis::CheckResult;
use luau_common::BString;
use luau_config::Mode;
use luau_syntax::ast::{AstVisitor, Statement};
use luau_syntax::location::Location;
use luau_syntax::parser::{ParseOptions, ParsedSource};

use crate::annotate::returned_function;
use crate::checker::{Checked, Checker};
use crate::confidence::KnownTypes;

/// The message for a type function. Type functions are programs that the checker would run.
pub(crate) const TYPE_FUNCTION: &str =
    "type functions are not run, and so the types of this script are not checked";

/// Returns the certain errors in the checked unit and its modules, and all errors of files in strict mode.
pub(crate) fn problems(checker: &Checker, checked: &Checked, result: &CheckResult) -> Vec<TypeProblem> {
    let Checked { unit, annotated } = checked;
    let mut problems = Vec::new();
    for file in std::iter::once(&unit.file).chain(unit.modules.iter().map(|module| &module.file)) {
        let is_unit = *file == unit.file;
        let Some(model) = checker.semantic_model(&BString::from(file.as_bytes())) else { continue };
        let view = model.module();
        let Some(root) = view.source().map(|source| source.root()) else { continue };
        // Modules have their own mode comment.
        let requested = unit.text_of(file).and_then(|text| mode_of(text));
        let known = KnownTypes::of(&model, root, returned_function(root).filter(|_| is_unit));
        let column = |line, column| if is_unit { annotated.column(line, column) } else { column };
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
    problems
}

/// Returns a problem for the first type function in the unit and its modules.
pub(crate) fn type_function(unit: &ScriptUnit) -> Option<TypeProblem> {
    let modules = unit.modules.iter().map(|module| (&module.file, &module.text));
    let mut files = std::iter::once((&unit.file, &unit.text)).chain(modules);
    files.find_map(|(file, text)| {
        let at = type_function_in(text)?;
        let start = at.begin.column as usize;
        Some(TypeProblem {
            file: file.clone(),
            line: at.begin.line as usize + 1,
            columns: (start, start + "type function".len()),
            message: String::from(TYPE_FUNCTION),
        })
    })
}

fn type_function_in(text: &str) -> Option<Location> {
    #[derive(Default)]
    struct TypeFunctions(Option<Location>);

    impl<'ast> AstVisitor<'ast> for TypeFunctions {
        fn visit_type_function_statement(&mut self, statement: Statement<'ast>) -> bool {
            self.0.get_or_insert(statement.location);
            false
        }
    }

    if !text.contains("type") {
        return None;
    }
    let parsed = ParsedSource::parse(text, ParseOptions::default()).ok()?;
    let mut found = TypeFunctions::default();
    parsed.root().visit(&mut found);
    found.0
}

/// Returns the mode requested by a comment at the top of a script, such as `--!strict`.
pub(crate) fn mode_of(text: &str) -> Option<Mode> {
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
