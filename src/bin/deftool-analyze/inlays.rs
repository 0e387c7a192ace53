//! The inferred types of variables, to show beside them.

use deftool_script::Inlay;
use luau_common::BString;
use luau_syntax::ast::{AstVisitor, Expression, ExpressionKind, Local, Statement, StatementView};

use crate::checker::{Checked, Checker};
use crate::describe::declared_type;
use crate::types;

/// Maximum length of a type beside a variable, in bytes.
const MAX_TYPE: usize = 40;

/// Parts of the texts of types that say nothing to people.
const UNCLEAR: [&str; 6] = ["any", "unknown", "never", "*error", " where ", "\n"];

/// Returns the types of the variables of the checked unit that have no annotation and whose value does not show the type.
pub(crate) fn inlays(checker: &Checker, checked: &Checked) -> Vec<Inlay> {
    let name = BString::from(checked.unit.file.as_bytes());
    let Some(model) = checker.semantic_model(&name) else { return Vec::new() };
    let Some(source) = model.module().source() else { return Vec::new() };
    let mut variables = Variables::default();
    source.root().visit(&mut variables);
    let inlay = |local: &Local<'_>| {
        let written = types::text_of(model.graph(), declared_type(&model, local)?);
        let is_clear = written.len() <= MAX_TYPE && !UNCLEAR.iter().any(|part| written.contains(part));
        let offset = checked.annotated.span_of(local.location).1;
        is_clear.then(|| Inlay { offset, label: format!(": {written}") })
    };
    variables.0.into_iter().filter(|local| local.annotation.is_none()).filter_map(inlay).collect()
}

#[derive(Default)]
struct Variables<'ast>(Vec<&'ast Local<'ast>>);

impl<'ast> AstVisitor<'ast> for Variables<'ast> {
    fn visit_local_statement(&mut self, statement: Statement<'ast>) -> bool {
        if let StatementView::Local(local) = statement.view() {
            let pairs = local.bindings.iter().zip(local.values);
            self.0.extend(pairs.filter(|(_, value)| !shows_type(**value)).map(|(binding, _)| *binding));
        }
        true
    }

    fn visit_generic_for_statement(&mut self, statement: Statement<'ast>) -> bool {
        if let StatementView::GenericFor(for_loop) = statement.view() {
            self.0.extend(for_loop.names.iter().copied());
        }
        true
    }
}

/// Returns whether a value is a literal, or a module.
fn shows_type(value: Expression<'_>) -> bool {
    match value.kind() {
        ExpressionKind::Boolean(_)
        | ExpressionKind::Number { .. }
        | ExpressionKind::String { .. }
        | ExpressionKind::InterpString { .. }
        | ExpressionKind::Table { .. }
        | ExpressionKind::FunctionLiteral(_)
        | ExpressionKind::TypeAssertion { .. }
        | ExpressionKind::Nil => true,
        ExpressionKind::Call { func, .. } => {
            matches!(func.kind(), ExpressionKind::Global(name) if name.bytes() == b"require")
        }
        _ => false,
    }
}
