//! The signatures of the function in whose arguments a position is.

use deftool_script::{SignatureLabel, Signatures};
use luau_analysis::SemanticModel;
use luau_analysis::types::{FunctionType, TypePackKind, get_function_name_as_string};
use luau_common::BString;
use luau_syntax::ast::{AstVisitor, Expression, ExpressionKind};
use luau_syntax::location::Position;

use crate::annotate::Annotated;
use crate::checker::{Checked, Checker};
use crate::complete::global_of;
use crate::types;

/// Returns the signatures at an offset of the checked unit.
pub(crate) fn signatures(checker: &Checker, checked: &Checked, offset: usize) -> Option<Signatures> {
    let model = checker.semantic_model(&BString::from(checked.unit.file.as_bytes()))?;
    let at = checked.annotated.position_of(offset);
    let mut calls = Calls { at, annotated: &checked.annotated, innermost: None };
    model.module().source()?.root().visit(&mut calls);
    let ExpressionKind::Call { func, args, self_call, .. } = calls.innermost?.kind() else { return None };
    let id = model.expression_type(func)?.id();
    let name = get_function_name_as_string(func).unwrap_or_default().to_string();
    let labels = types::functions(model.graph(), id).into_iter();
    let labels: Vec<SignatureLabel> =
        labels.map(|function| label(&model, &name, function, self_call)).collect();
    let symbol = model.documentation_symbol_at(name_end(func)).map(|symbol| symbol.to_string());
    let global = symbol.as_deref().map(global_of).unwrap_or_default().to_owned();
    let last = args.iter().rposition(|argument| argument.location().begin <= at);
    // After a comma, the next argument may not exist yet.
    let is_after_comma = last.and_then(|last| args.get(last)).is_some_and(|argument| {
        let end = checked.annotated.offset_of(argument.location().end);
        let here = checked.annotated.offset_of(at);
        checked.annotated.text.get(end..here).is_some_and(|between| between.contains(','))
    });
    let active_parameter = last.map_or(0, |last| last + usize::from(is_after_comma));
    (!labels.is_empty()).then_some(Signatures { labels, active_parameter, global })
}

/// Returns a position in the last name of a function.
fn name_end(func: Expression<'_>) -> Position {
    let end = func.location().end;
    Position::new(end.line, end.column.saturating_sub(1))
}

/// The innermost call that has a position between its parentheses.
struct Calls<'ast, 'a> {
    at: Position,
    annotated: &'a Annotated,
    innermost: Option<Expression<'ast>>,
}

impl<'ast> AstVisitor<'ast> for Calls<'ast, '_> {
    fn visit_call_expression(&mut self, expression: Expression<'ast>) -> bool {
        if let ExpressionKind::Call { arg_location, .. } = expression.kind() {
            // From the end of the first parenthesis to that of the last one, which may be missing.
            let before = self.annotated.text.get(..self.annotated.offset_of(arg_location.end));
            let is_closed = before.is_some_and(|before| before.ends_with(')'));
            let is_before_end = self.at < arg_location.end || (self.at == arg_location.end && !is_closed);
            if arg_location.begin <= self.at && is_before_end {
                self.innermost = Some(expression);
            }
        }
        true
    }
}

fn label(model: &SemanticModel<'_>, name: &str, function: &FunctionType, self_call: bool) -> SignatureLabel {
    let graph = model.graph();
    let (arguments, rest) = graph.flatten_type_pack(function.arg_types);
    let mut text = format!("{name}(");
    let mut parameters = Vec::new();
    let mut add = |text: &mut String, parameter: &str| {
        if !text.ends_with('(') {
            text.push_str(", ");
        }
        parameters.push((text.len(), text.len() + parameter.len()));
        text.push_str(parameter);
    };
    for (index, id) in arguments.into_iter().enumerate().skip(usize::from(self_call)) {
        let named = function.arg_names.get(index).and_then(Option::as_ref);
        let written = types::text_of(graph, id);
        let parameter = match named {
            Some(named) => format!("{}: {written}", named.name),
            None => written,
        };
        add(&mut text, &parameter);
    }
    if let Some(rest) = rest
        && let TypePackKind::Variadic(variadic) = graph.pack_kind(graph.follow_type_pack(rest))
        && !variadic.hidden
    {
        add(&mut text, &format!("...{}", types::text_of(graph, variadic.ty)));
    }
    text.push(')');
    let results = graph.stringify_pack_with_options(function.ret_types, &mut types::options()).to_string();
    if results != "()" {
        text.push_str(" -> ");
        text.push_str(&results);
    }
    SignatureLabel { text, parameters }
}
