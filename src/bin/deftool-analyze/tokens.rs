//! The meanings of the names in a source, to colour them.

use std::collections::HashSet;

use deftool_script::{NameToken, ScriptUnit, TokenMeaning};
use luau_syntax::ast::{AstVisitor, Expression, ExpressionKind, Local, LocalId, Statement, StatementView};
use luau_syntax::location::Location;
use luau_syntax::parser::{ParseOptions, ParsedSource};

use crate::text::Lines;

/// Returns the names of a source with their meanings, in order.
pub(crate) fn tokens(unit: &ScriptUnit) -> Vec<NameToken> {
    let Ok(parsed) = ParsedSource::parse(&*unit.text, ParseOptions::default()) else { return Vec::new() };
    let lines = Lines::of(&unit.text);
    let mut names = Names::default();
    parsed.root().visit(&mut names);
    let mut found: Vec<NameToken> = names
        .found
        .into_iter()
        .map(|(location, meaning)| NameToken { span: lines.span(location), meaning })
        .filter(|token| token.span.0 < token.span.1)
        .collect();
    // The function of a call was found as a field or variable, too.
    found.sort_by_key(|token| (token.span, token.meaning != TokenMeaning::Function));
    found.dedup_by_key(|token| token.span);
    found
}

#[derive(Default)]
struct Names {
    parameters: HashSet<LocalId>,
    functions: HashSet<LocalId>,
    found: Vec<(Location, TokenMeaning)>,
}

impl Names {
    fn add_local(&mut self, local: &Local<'_>, at: Location) {
        let id = local.identity();
        let meaning = if self.parameters.contains(&id) {
            TokenMeaning::Parameter
        } else if self.functions.contains(&id) {
            TokenMeaning::Function
        } else {
            TokenMeaning::Variable
        };
        self.found.push((at, meaning));
    }
}

impl<'ast> AstVisitor<'ast> for Names {
    fn visit_function_literal_expression(&mut self, expression: Expression<'ast>) -> bool {
        if let ExpressionKind::FunctionLiteral(function) = expression.kind() {
            for parameter in function.args {
                self.parameters.insert(parameter.identity());
                self.add_local(parameter, parameter.location);
            }
        }
        true
    }

    fn visit_local_function_statement(&mut self, statement: Statement<'ast>) -> bool {
        if let StatementView::LocalFunction(local) = statement.view() {
            self.functions.insert(local.name.identity());
            self.add_local(local.name, local.name.location);
        }
        true
    }

    fn visit_local_statement(&mut self, statement: Statement<'ast>) -> bool {
        if let StatementView::Local(local) = statement.view() {
            for (index, binding) in local.bindings.iter().enumerate() {
                let value = local.values.get(index);
                if value.is_some_and(|value| value.as_function().is_some()) {
                    self.functions.insert(binding.identity());
                }
                self.add_local(binding, binding.location);
            }
        }
        true
    }

    fn visit_local_expression(&mut self, expression: Expression<'ast>) -> bool {
        if let ExpressionKind::Local { local, .. } = expression.kind() {
            self.add_local(local, expression.location());
        }
        true
    }

    fn visit_index_name_expression(&mut self, expression: Expression<'ast>) -> bool {
        if let ExpressionKind::IndexName { index_location, .. } = expression.kind() {
            self.found.push((index_location, TokenMeaning::Field));
        }
        true
    }

    fn visit_call_expression(&mut self, expression: Expression<'ast>) -> bool {
        if let ExpressionKind::Call { func, .. } = expression.kind() {
            match func.kind() {
                ExpressionKind::IndexName { index_location, .. } => {
                    self.found.push((index_location, TokenMeaning::Function));
                }
                ExpressionKind::Global(_) => self.found.push((func.location(), TokenMeaning::Function)),
                _ => {}
            }
        }
        true
    }
}
