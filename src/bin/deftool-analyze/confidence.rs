//! Selects the findings of the type checker that are certain.
//!
//! Luau's checker infers missing types. In scripts without annotations, inferred types are often not what the author
//! meant: a table that gets new fields, a helper that accepts several types. So only findings about *known* types are
//! reported: arguments, host tables, Luau's libraries, and values read from them. Scripts with `--!strict` get all
//! findings.

use std::collections::{HashMap, HashSet};

use luau_analysis::SemanticModel;
use luau_analysis::diagnostics::{TypeError, TypeErrorData};
use luau_syntax::ast::{
    AstVisitor, BinaryOp, Block, Expression, ExpressionKind, Function, LocalId, Statement, StatementView,
};
use luau_syntax::location::Location;

use crate::annotate::AssignedLocals;
use deftool_script::host_tables;

/// Libraries that contain only functions with plain parameter types.
const LIBRARIES: [&str; 6] = ["string", "math", "utf8", "os", "bit32", "buffer"];

/// The expressions with known types in one source.
pub(crate) struct KnownTypes<'m, 'f> {
    model: &'m SemanticModel<'f>,
    /// Locals with values of known types.
    locals: HashSet<LocalId>,
    assigned: AssignedLocals,
    /// Expressions in which errors are certain: reads of known values, and calculations with them.
    uses: HashSet<Location>,
    /// Calls of known functions.
    calls: HashSet<Location>,
    /// Arguments of such calls, and whether their own types are known.
    arguments: HashMap<Location, bool>,
    /// Comparisons with strings that the value can never have.
    pub(crate) comparisons: Vec<(Location, String)>,
}

impl<'m, 'f> KnownTypes<'m, 'f> {
    /// Collects the known types of a source. `tool_function` is the function that receives the tool's arguments.
    pub(crate) fn of(
        model: &'m SemanticModel<'f>,
        root: Block<'f>,
        tool_function: Option<&Function<'f>>,
    ) -> Self {
        let mut assigned = AssignedLocals::default();
        root.visit(&mut assigned);
        let mut known = Self {
            model,
            locals: HashSet::new(),
            assigned,
            uses: HashSet::new(),
            calls: HashSet::new(),
            arguments: HashMap::new(),
            comparisons: Vec::new(),
        };
        for parameter in tool_function.map_or(&[][..], |function| function.args) {
            if parameter.annotation.is_some() {
                known.locals.insert(parameter.identity());
            }
        }
        root.visit(&mut known);
        known
    }

    /// Returns whether an error is certain. `message` is the message of the checker.
    pub(crate) fn is_certain(&self, error: &TypeError, message: &str) -> bool {
        let at = &error.location;
        match &error.data {
            TypeErrorData::UnknownProperty(_)
            | TypeErrorData::UnknownPropButFoundLikeProp(_)
            | TypeErrorData::OptionalValueAccess(_)
            | TypeErrorData::MissingUnionProperty(_)
            | TypeErrorData::NotATable(_)
            | TypeErrorData::CannotCallNonFunction(_)
            | TypeErrorData::UninhabitedTypeFunction(_)
            | TypeErrorData::CannotInferBinaryOperation(_) => self.uses.contains(at) && is_plain(message),
            // Calls of loop iterators are inferred and may be wrong.
            TypeErrorData::CountMismatch(count) => self.calls.contains(at) && count.expected != count.actual,
            TypeErrorData::TypeMismatch(_) => match self.arguments.get(at) {
                // Results of libraries are often nil in theory only: `string.match`, `tonumber`.
                Some(is_known) => {
                    let got = message.rsplit("but got").next().unwrap_or_default();
                    let may_be_nil = got.contains("?'") || got.contains("'nil'");
                    // An empty table from another function matches any table type.
                    let is_empty_table = got.trim_matches(['\'', '`', ' ', '\n', '{', '}']).is_empty();
                    is_plain(message) && (*is_known || !may_be_nil) && !is_empty_table
                }
                None => false,
            },
            TypeErrorData::UnknownSymbol(_) => message.to_ascii_lowercase().contains("unknown type"),
            _ => false,
        }
    }

    /// Returns whether the type of `expression` is declared, not inferred.
    fn is_known(&self, expression: Expression<'f>) -> bool {
        let mut inner = expression;
        loop {
            inner = match inner.kind() {
                ExpressionKind::Local { local, .. } => return self.locals.contains(&local.identity()),
                ExpressionKind::Global(name) => return is_host_table(name.bytes()),
                ExpressionKind::IndexName { expr, .. } | ExpressionKind::IndexExpr { expr, .. } => expr,
                ExpressionKind::Grouped(inner) => inner,
                ExpressionKind::Call { func, .. } => func,
                _ => return false,
            };
        }
    }

    /// Returns whether `function` is a host or library function.
    fn is_known_function(function: Expression<'f>) -> bool {
        let ExpressionKind::IndexName { expr, .. } = function.kind() else { return false };
        let ExpressionKind::Global(name) = expr.kind() else { return false };
        is_host_table(name.bytes()) || LIBRARIES.iter().any(|library| library.as_bytes() == name.bytes())
    }

    /// Returns whether the loop variables over `value` have known types.
    fn is_known_iteration(&self, value: Expression<'f>) -> bool {
        if let ExpressionKind::Call { func, args, .. } = value.kind()
            && let ExpressionKind::Global(name) = func.kind()
            && matches!(name.bytes(), b"ipairs" | b"pairs")
        {
            return args.first().is_some_and(|iterated| self.is_known(*iterated));
        }
        self.is_known(value)
    }

    /// Records `value == "word"` if the type of `value` is a union of other strings.
    fn compare(&mut self, at: Location, value: Expression<'f>, word: Expression<'f>) {
        let ExpressionKind::String { value: word, .. } = word.kind() else { return };
        if !self.is_known(value) {
            return;
        }
        let Some(written) = self.model.expression_type(value) else { return };
        // Expand aliases to their strings.
        let mut options = luau_analysis::types::ToStringOptions::default();
        options.exhaustive = true;
        let written = written.follow().to_string_with_options(&mut options).to_string();
        let Some(words) = words_of(&written) else { return };
        let Ok(word) = std::str::from_utf8(word.as_bytes()) else { return };
        if !words.iter().any(|known| known == word) {
            let words: Vec<String> = words.iter().map(|known| format!("\"{known}\"")).collect();
            self.comparisons.push((at, format!("this is never \"{word}\": it is {}", words.join(" or "))));
        }
    }
}

impl<'f> AstVisitor<'f> for KnownTypes<'_, 'f> {
    fn visit_local_statement(&mut self, statement: Statement<'f>) -> bool {
        if let StatementView::Local(declared) = statement.view() {
            for (local, value) in declared.bindings.iter().zip(declared.values) {
                let may_change = self.assigned.may_change_type(local);
                if self.is_known(*value) && !may_change {
                    self.locals.insert(local.identity());
                }
            }
        }
        true
    }

    fn visit_generic_for_statement(&mut self, statement: Statement<'f>) -> bool {
        if let StatementView::GenericFor(for_loop) = statement.view()
            && for_loop.values.first().is_some_and(|value| self.is_known_iteration(*value))
        {
            self.locals.extend(for_loop.names.iter().map(|local| local.identity()));
        }
        true
    }

    fn visit_index_name_expression(&mut self, expression: Expression<'f>) -> bool {
        if let ExpressionKind::IndexName { expr, .. } = expression.kind()
            && self.is_known(expr)
        {
            self.uses.extend([expression.location, expr.location]);
        }
        true
    }

    fn visit_call_expression(&mut self, expression: Expression<'f>) -> bool {
        if let ExpressionKind::Call { func, args, self_call, .. } = expression.kind() {
            if self.is_known(func) {
                self.uses.extend([expression.location, func.location]);
            }
            if Self::is_known_function(func) && !self_call {
                self.calls.extend([expression.location, func.location]);
                for argument in args {
                    self.arguments.insert(argument.location, self.is_known(*argument));
                }
            }
        }
        true
    }

    fn visit_binary_expression(&mut self, expression: Expression<'f>) -> bool {
        if let ExpressionKind::Binary { lhs, op, rhs } = expression.kind() {
            match op {
                BinaryOp::Equal | BinaryOp::NotEqual => {
                    self.compare(expression.location, lhs, rhs);
                    self.compare(expression.location, rhs, lhs);
                }
                BinaryOp::And | BinaryOp::Or => {}
                _ => {
                    if self.is_known(lhs) || self.is_known(rhs) {
                        self.uses.insert(expression.location);
                    }
                }
            }
        }
        true
    }
}

fn is_host_table(name: &[u8]) -> bool {
    host_tables().iter().any(|table| table.name.as_bytes() == name)
}

/// Returns whether a message contains only declared types and no inferred types.
fn is_plain(message: &str) -> bool {
    const INFERRED: [&str; 9] =
        ["unknown", "{+", "where ", "~", "never", "*error", "intersect<", "add<", "mul<"];
    !INFERRED.iter().any(|mark| message.contains(mark))
}

/// Returns the strings of a type that is a union of string literals and possibly nil, such as `("a" | "b")?`.
fn words_of(written: &str) -> Option<Vec<String>> {
    let written = written.trim().trim_end_matches('?');
    let written = written.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(written);
    let words = written.split(" | ").filter(|part| *part != "nil").map(|part| {
        let word = part.strip_prefix('"')?.strip_suffix('"')?;
        // Strings with escapes are not compared.
        (!word.contains(['\\', '"'])).then(|| word.to_owned())
    });
    let mut words = words.collect::<Option<Vec<_>>>()?;
    words.sort_unstable();
    words.dedup();
    (!words.is_empty()).then_some(words)
}
