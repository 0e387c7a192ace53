//! Which of the checker's findings are beyond doubt.
//!
//! Luau's checker infers the types of what has none, and in scripts without a single annotation that is often not what
//! was meant: a table that grows fields, a helper that takes several types. So only what it says of *known* types is
//! told: arguments, host tables, Luau's libraries, and what is read of these. A script that says `--!strict` asks for
//! all of it.

use std::collections::{HashMap, HashSet};

use luau_analysis::SemanticModel;
use luau_analysis::diagnostics::{TypeError, TypeErrorData};
use luau_syntax::ast::{
    AstVisitor, BinaryOp, Block, Expression, ExpressionKind, Function, LocalId, Statement, StatementView,
};
use luau_syntax::location::Location;

use crate::annotate::SetLocals;
use deftool::script::host_tables;

/// Libraries whose functions take values of plain types.
const LIBRARIES: [&str; 6] = ["string", "math", "utf8", "os", "bit32", "buffer"];

/// What is known of the expressions of one source.
pub(crate) struct Known<'m, 'f> {
    model: &'m SemanticModel<'f>,
    /// Locals that hold what is known.
    locals: HashSet<LocalId>,
    set: SetLocals,
    /// Expressions a fault in which is beyond doubt: reads of known values, calculations with them.
    uses: HashSet<Location>,
    /// Calls of known functions.
    calls: HashSet<Location>,
    /// Arguments of such calls, and whether they are known themselves.
    arguments: HashMap<Location, bool>,
    /// Comparisons with words that never come.
    pub(crate) comparisons: Vec<(Location, String)>,
}

impl<'m, 'f> Known<'m, 'f> {
    /// `given`: the function that gets the tool's arguments.
    pub(crate) fn of(model: &'m SemanticModel<'f>, root: Block<'f>, given: Option<&Function<'f>>) -> Self {
        let mut set = SetLocals::default();
        root.visit(&mut set);
        let mut known = Self {
            model,
            locals: HashSet::new(),
            set,
            uses: HashSet::new(),
            calls: HashSet::new(),
            arguments: HashMap::new(),
            comparisons: Vec::new(),
        };
        for parameter in given.map_or(&[][..], |function| function.args) {
            if parameter.annotation.is_some() {
                known.locals.insert(parameter.identity());
            }
        }
        root.visit(&mut known);
        known
    }

    /// Whether an error is about what is known. `message`: what the checker says.
    pub(crate) fn holds(&self, error: &TypeError, message: &str) -> bool {
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
            // What a loop's iterator is called with is the analyser's own reckoning, which may be off.
            TypeErrorData::CountMismatch(count) => self.calls.contains(at) && count.expected != count.actual,
            TypeErrorData::TypeMismatch(_) => match self.arguments.get(at) {
                // What a library gives may be nil in theory alone: `string.match`, `tonumber`.
                Some(is_known) => {
                    let got = message.rsplit("but got").next().unwrap_or_default();
                    let may_be_nil = got.contains("?'") || got.contains("'nil'");
                    // An empty table that another function made fits whatever it will hold.
                    let is_empty_table = got.trim_matches(['\'', '`', ' ', '\n', '{', '}']).is_empty();
                    is_plain(message) && (*is_known || !may_be_nil) && !is_empty_table
                }
                None => false,
            },
            TypeErrorData::UnknownSymbol(_) => message.to_ascii_lowercase().contains("unknown type"),
            _ => false,
        }
    }

    /// Whether what `expression` is was declared, not inferred.
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

    /// Whether `function` is a host function or one of a library.
    fn is_known_function(function: Expression<'f>) -> bool {
        let ExpressionKind::IndexName { expr, .. } = function.kind() else { return false };
        let ExpressionKind::Global(name) = expr.kind() else { return false };
        is_host_table(name.bytes()) || LIBRARIES.iter().any(|library| library.as_bytes() == name.bytes())
    }

    /// Whether a loop over `values` gives what is known.
    fn is_walk(&self, value: Expression<'f>) -> bool {
        if let ExpressionKind::Call { func, args, .. } = value.kind()
            && let ExpressionKind::Global(name) = func.kind()
            && matches!(name.bytes(), b"ipairs" | b"pairs")
        {
            return args.first().is_some_and(|walked| self.is_known(*walked));
        }
        self.is_known(value)
    }

    /// Tells of `value == "word"` where the value is one of other words.
    fn compare(&mut self, at: Location, value: Expression<'f>, word: Expression<'f>) {
        let ExpressionKind::String { value: word, .. } = word.kind() else { return };
        if !self.is_known(value) {
            return;
        }
        let Some(written) = self.model.expression_type(value) else { return };
        // An alias says nothing of its words.
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

impl<'f> AstVisitor<'f> for Known<'_, 'f> {
    fn visit_local_statement(&mut self, statement: Statement<'f>) -> bool {
        if let StatementView::Local(made) = statement.view() {
            for (local, value) in made.bindings.iter().zip(made.values) {
                let is_free = self.set.is_set_freely(local);
                if self.is_known(*value) && !is_free {
                    self.locals.insert(local.identity());
                }
            }
        }
        true
    }

    fn visit_generic_for_statement(&mut self, statement: Statement<'f>) -> bool {
        if let StatementView::GenericFor(walk) = statement.view()
            && walk.values.first().is_some_and(|value| self.is_walk(*value))
        {
            self.locals.extend(walk.names.iter().map(|local| local.identity()));
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

/// Whether the types in a message are ones that somebody wrote down.
fn is_plain(message: &str) -> bool {
    const INFERRED: [&str; 9] =
        ["unknown", "{+", "where ", "~", "never", "*error", "intersect<", "add<", "mul<"];
    !INFERRED.iter().any(|mark| message.contains(mark))
}

/// The words of a type that is nothing but words, and nil maybe: `("a" | "b")?`.
fn words_of(written: &str) -> Option<Vec<String>> {
    let written = written.trim().trim_end_matches('?');
    let written = written.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(written);
    let words = written.split(" | ").filter(|part| *part != "nil").map(|part| {
        let word = part.strip_prefix('"')?.strip_suffix('"')?;
        // One with an escape in it is not compared.
        (!word.contains(['\\', '"'])).then(|| word.to_owned())
    });
    let mut words = words.collect::<Option<Vec<_>>>()?;
    words.sort_unstable();
    words.dedup();
    (!words.is_empty()).then_some(words)
}
