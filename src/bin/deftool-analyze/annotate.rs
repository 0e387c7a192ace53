//! Annotates the parameters of a script's function with the types of the tool's arguments, for the type checker.
//!
//! Authors write `function(location, unit)`; the checker reads `function(location: string, unit: GetWeatherUnit?)`. No
//! lines are added, so that locations can be mapped back. A parameter that the function assigns to is copied to a local
//! of the same name, so that its type can change.

use std::collections::HashMap;

use luau_syntax::ast::{
    AstVisitor, BinaryOp, Block, Expression, ExpressionKind, Function, Local, LocalId, Statement,
    StatementView,
};
use luau_syntax::location::{Location, Position};
use luau_syntax::parser::{ParseOptions, ParsedSource};

use crate::text::Lines;

/// An annotated source that maps positions to and from the original source.
pub(crate) struct Annotated {
    pub(crate) text: String,
    lines: Lines,
    /// The lines of the original source.
    original: Lines,
    /// The insertions per line, in order: the column in the new text, and the length in bytes.
    inserted: HashMap<u32, Vec<(u32, u32)>>,
}

impl Annotated {
    /// Returns the source without annotations.
    pub(crate) fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            lines: Lines::of(text),
            original: Lines::of(text),
            inserted: HashMap::new(),
        }
    }

    /// Annotates the parameters of the returned function with `types`. Existing annotations are kept.
    pub(crate) fn of(text: &str, types: &[Option<String>]) -> Self {
        let Ok(parsed) = ParsedSource::parse(text, ParseOptions::default()) else { return Self::plain(text) };
        let root = parsed.root();
        let Some(function) = returned_function(root) else { return Self::plain(text) };
        let mut assigned = AssignedLocals::default();
        function.body.visit(&mut assigned);
        let mut insertions = Vec::new();
        let mut copied: Vec<String> = Vec::new();
        for (parameter, written) in function.args.iter().zip(types) {
            let Some(written) = written.as_ref().filter(|_| parameter.annotation.is_none()) else { continue };
            insertions.push((parameter.location.end, format!(": {written}")));
            if assigned.may_change_type(parameter) {
                copied.push(String::from_utf8_lossy(parameter.name.bytes()).into_owned());
            }
        }
        let body = function.arg_location.filter(|_| function.return_annotation.is_none());
        match body {
            Some(position) if !copied.is_empty() => {
                let names = copied.join(", ");
                insertions.push((position.end, format!(" local {names} = {names} ")));
            }
            Some(_) | None => {}
        }
        insert(text, &insertions).unwrap_or_else(|| Self::plain(text))
    }

    /// Returns the original column of a column in the annotated source. Lines and columns start at 0.
    pub(crate) fn column(&self, line: u32, column: u32) -> u32 {
        let mut before = 0;
        for &(at, length) in self.inserted.get(&line).map_or(&[][..], Vec::as_slice) {
            if column < at {
                break;
            }
            // A column within an insertion maps to its start.
            before += length.min(column - at);
        }
        column - before
    }

    /// Returns the position in the annotated source of an offset in the original source.
    pub(crate) fn position_of(&self, offset: usize) -> Position {
        let Position { line, column } = self.original.position(offset);
        let mut shift = 0;
        for &(at, length) in self.inserted.get(&line).map_or(&[][..], Vec::as_slice) {
            // What ends at an insertion stays before it.
            if column + shift <= at {
                break;
            }
            shift += length;
        }
        Position::new(line, column + shift)
    }

    /// Returns the offset in the annotated source of a position in it.
    pub(crate) fn offset_of(&self, at: Position) -> usize {
        self.lines.offset(at)
    }

    /// Returns the span in the original source of a location in the annotated source.
    pub(crate) fn span_of(&self, at: Location) -> (usize, usize) {
        let original = |at: Position| Position::new(at.line, self.column(at.line, at.column));
        self.original.span(Location::new(original(at.begin), original(at.end)))
    }
}

/// Inserts texts at positions, which must be sorted.
fn insert(text: &str, insertions: &[(Position, String)]) -> Option<Annotated> {
    let mut annotated = Annotated::plain(text);
    annotated.text.clear();
    let mut done = 0;
    for (at, added) in insertions {
        let offset = annotated.original.offset(*at);
        annotated.text.push_str(text.get(done..offset)?);
        done = offset;
        let of_line = annotated.inserted.entry(at.line).or_default();
        let shift: u32 = of_line.iter().map(|(_, length)| length).sum();
        of_line.push((at.column + shift, u32::try_from(added.len()).ok()?));
        annotated.text.push_str(added);
    }
    annotated.text.push_str(text.get(done..)?);
    annotated.lines = Lines::of(&annotated.text);
    Some(annotated)
}

/// Returns the function that the script returns: a function expression or a local function.
pub(crate) fn returned_function(root: Block<'_>) -> Option<&Function<'_>> {
    let statements = root.as_slice();
    // In a broken source, something may follow.
    let returned = statements.iter().rev().find_map(|statement| match statement.view() {
        StatementView::Return(returned) => Some(returned),
        _ => None,
    });
    let mut value = *returned?.expressions.first()?;
    while let ExpressionKind::Grouped(inner) = value.kind() {
        value = inner;
    }
    match value.kind() {
        ExpressionKind::FunctionLiteral(function) => Some(function),
        ExpressionKind::Local { local, .. } => {
            statements.iter().rev().find_map(|statement| defined(*statement, local.identity()))
        }
        _ => None,
    }
}

/// Returns the function that a statement assigns to the local `wanted`.
fn defined(statement: Statement<'_>, wanted: LocalId) -> Option<&Function<'_>> {
    match statement.view() {
        StatementView::LocalFunction(local) => {
            (local.name.identity() == wanted).then(|| local.function.as_function())?
        }
        StatementView::Local(local) => {
            let index = local.bindings.iter().position(|binding| binding.identity() == wanted)?;
            local.values.get(index)?.as_function()
        }
        _ => None,
    }
}

/// The locals that are assigned after their declaration.
#[derive(Default)]
pub(crate) struct AssignedLocals {
    /// Whether all assignments of a local are defaults such as `unit = unit or "celsius"`.
    only_defaults: HashMap<LocalId, bool>,
}

impl AssignedLocals {
    /// Returns whether an assignment may change the type of `local`.
    pub(crate) fn may_change_type(&self, local: &Local<'_>) -> bool {
        self.only_defaults.get(&local.identity()).is_some_and(|only| !only)
    }

    fn add(&mut self, variable: Expression<'_>, value: Option<Expression<'_>>) {
        let ExpressionKind::Local { local, .. } = variable.kind() else { return };
        let is_default = value.is_some_and(|value| match value.kind() {
            ExpressionKind::Binary { lhs, op: BinaryOp::Or, rhs } => {
                let is_same =
                    matches!(lhs.kind(), ExpressionKind::Local { local: set, .. } if set.identity() == local.identity());
                is_same && is_constant(rhs)
            }
            _ => is_constant(value),
        });
        *self.only_defaults.entry(local.identity()).or_insert(true) &= is_default;
    }
}

fn is_constant(value: Expression<'_>) -> bool {
    matches!(
        value.kind(),
        ExpressionKind::Boolean(_) | ExpressionKind::Number { .. } | ExpressionKind::String { .. }
    )
}

impl<'ast> AstVisitor<'ast> for AssignedLocals {
    fn visit_assign_statement(&mut self, statement: Statement<'ast>) -> bool {
        if let StatementView::Assign(assign) = statement.view() {
            for (index, variable) in assign.vars.iter().enumerate() {
                self.add(*variable, assign.values.get(index).copied());
            }
        }
        true
    }

    fn visit_compound_assign_statement(&mut self, statement: Statement<'ast>) -> bool {
        if let StatementView::CompoundAssign(assign) = statement.view() {
            self.add(assign.var, None);
        }
        true
    }
}
