//! The functions, variables and tests of a source.

use deftool_script::{OutlineItem, OutlineKind, ScriptUnit};
use luau_analysis::types::get_function_name_as_string;
use luau_syntax::ast::{AstVisitor, Expression, ExpressionKind, Local, Statement, StatementView, TableItem};
use luau_syntax::location::Location;
use luau_syntax::parser::{ParseOptions, ParsedSource};

use crate::annotate::returned_function;
use crate::text::Lines;

/// Returns the functions, the variables at the top level, and the tests of a source, in order.
pub(crate) fn outline(unit: &ScriptUnit) -> Vec<OutlineItem> {
    let Ok(parsed) = ParsedSource::parse(&*unit.text, ParseOptions::default()) else { return Vec::new() };
    let lines = Lines::of(&unit.text);
    let root = parsed.root();
    let mut items = Items { lines: &lines, found: Vec::new() };
    for statement in root.as_slice() {
        if let StatementView::Local(local) = statement.view() {
            let values = local.values.iter().map(Some).chain(std::iter::repeat(None));
            for (binding, value) in local.bindings.iter().zip(values) {
                let is_function = value.is_some_and(|value| value.as_function().is_some());
                let kind = if is_function { OutlineKind::Function } else { OutlineKind::Variable };
                items.add_local(kind, binding, statement.location());
            }
        }
    }
    root.visit(&mut items);
    let is_known = |found: &[OutlineItem], span| found.iter().any(|item| item.span == span);
    if let Some(function) = returned_function(root).filter(|_| !unit.is_test) {
        let span = lines.span(function.location);
        let is_inside = items.found.iter().any(|item| item.span.0 <= span.0 && span.1 <= item.span.1);
        if !is_inside && !is_known(&items.found, span) {
            let name_span = (span.0, (span.0 + "function".len()).min(span.1));
            let name = String::from("return function");
            items.found.push(OutlineItem { name, kind: OutlineKind::Function, span, name_span });
        }
    }
    let mut found = items.found;
    // Outer items first.
    found.sort_by_key(|item| (item.span.0, std::cmp::Reverse(item.span.1)));
    found
}

struct Items<'l> {
    lines: &'l Lines,
    found: Vec<OutlineItem>,
}

impl Items<'_> {
    fn add(&mut self, name: &[u8], kind: OutlineKind, whole: Location, name_at: Location) {
        let name = String::from_utf8_lossy(name).into_owned();
        let (span, name_span) = (self.lines.span(whole), self.lines.span(name_at));
        // An editor requires that the name is in the item.
        if span.0 <= name_span.0 && name_span.1 <= span.1 {
            self.found.push(OutlineItem { name, kind, span, name_span });
        }
    }

    fn add_local(&mut self, kind: OutlineKind, local: &Local<'_>, whole: Location) {
        self.add(local.name.bytes(), kind, whole, local.location);
    }
}

impl<'ast> AstVisitor<'ast> for Items<'_> {
    fn visit_local_function_statement(&mut self, statement: Statement<'ast>) -> bool {
        if let StatementView::LocalFunction(local) = statement.view() {
            self.add_local(OutlineKind::Function, local.name, statement.location());
        }
        true
    }

    fn visit_function_declaration_statement(&mut self, statement: Statement<'ast>) -> bool {
        if let StatementView::FunctionDeclaration(declared) = statement.view() {
            let name = get_function_name_as_string(declared.name).unwrap_or_default();
            self.add(&name, OutlineKind::Function, statement.location(), declared.name.location());
        }
        true
    }

    fn visit_table_expression(&mut self, expression: Expression<'ast>) -> bool {
        if let ExpressionKind::Table { items } = expression.kind() {
            for item in items {
                if let TableItem::Record { key, value } = item
                    && value.as_function().is_some()
                    && let ExpressionKind::String { value: name, .. } = key.kind()
                {
                    let whole = Location::spanning(key.location(), value.location());
                    self.add(name.as_bytes(), OutlineKind::Function, whole, key.location());
                }
            }
        }
        true
    }

    fn visit_call_expression(&mut self, expression: Expression<'ast>) -> bool {
        if let ExpressionKind::Call { func, args, .. } = expression.kind()
            && let ExpressionKind::Global(called) = func.kind()
            && called.bytes() == b"test"
            && let Some(first) = args.first()
            && let ExpressionKind::String { value, .. } = first.kind()
        {
            self.add(value.as_bytes(), OutlineKind::Test, expression.location(), first.location());
        }
        true
    }
}
