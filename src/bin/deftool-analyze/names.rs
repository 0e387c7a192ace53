//! The uses of a name: of a local in its file, and of a field of a module in every file.

use deftool_script::{NameUses, Place, ScriptUnit};
use luau_analysis::SemanticModel;
use luau_common::BString;
use luau_syntax::ast::{
    AstVisitor, Expression, ExpressionKind, Local, LocalId, Statement, StatementView, TableItem,
};
use luau_syntax::location::{Location, Position};
use luau_syntax::parser::{ParseOptions, ParsedSource};

use crate::checker::{Checked, Checker};
use crate::describe::{Named, Target, field_location};
use crate::text::Lines;

/// Returns the local at an offset of a text, with all its uses. Needs no types.
pub(crate) fn local_uses(unit: &ScriptUnit, offset: usize) -> Option<NameUses> {
    let parsed = ParsedSource::parse(&*unit.text, ParseOptions::default()).ok()?;
    let lines = Lines::of(&unit.text);
    let at = lines.position(offset);
    let mut locals = Locals::default();
    parsed.root().visit(&mut locals);
    let (wanted, _) = *locals.found.iter().find(|(_, location)| location.contains_closed(at))?;
    let uses = locals.found.iter().filter(|(id, _)| *id == wanted);
    let mut uses: Vec<(usize, usize)> = uses.map(|(_, location)| lines.span(*location)).collect();
    uses.sort_unstable();
    uses.dedup();
    // The declaration comes before all uses.
    let definition = *uses.first()?;
    let name = unit.text.get(definition.0..definition.1)?.to_owned();
    let definition = Place { file: unit.file.clone(), span: definition };
    Some(NameUses { name, is_member: false, definition, uses })
}

/// The locals of a source: each declaration and use.
#[derive(Default)]
struct Locals {
    found: Vec<(LocalId, Location)>,
}

impl Locals {
    fn declare<'a>(&mut self, locals: impl IntoIterator<Item = &'a Local<'a>>) {
        self.found.extend(locals.into_iter().map(|local| (local.identity(), local.location)));
    }
}

impl<'ast> AstVisitor<'ast> for Locals {
    fn visit_local_statement(&mut self, statement: Statement<'ast>) -> bool {
        if let StatementView::Local(local) = statement.view() {
            self.declare(local.bindings.iter().copied());
        }
        true
    }

    fn visit_local_function_statement(&mut self, statement: Statement<'ast>) -> bool {
        if let StatementView::LocalFunction(local) = statement.view() {
            self.declare([local.name]);
        }
        true
    }

    fn visit_numeric_for_statement(&mut self, statement: Statement<'ast>) -> bool {
        if let StatementView::NumericFor(for_loop) = statement.view() {
            self.declare([for_loop.name]);
        }
        true
    }

    fn visit_generic_for_statement(&mut self, statement: Statement<'ast>) -> bool {
        if let StatementView::GenericFor(for_loop) = statement.view() {
            self.declare(for_loop.names.iter().copied());
        }
        true
    }

    fn visit_function_literal_expression(&mut self, expression: Expression<'ast>) -> bool {
        if let ExpressionKind::FunctionLiteral(function) = expression.kind() {
            self.declare(function.args.iter().copied());
        }
        true
    }

    fn visit_local_expression(&mut self, expression: Expression<'ast>) -> bool {
        if let ExpressionKind::Local { local, .. } = expression.kind() {
            self.found.push((local.identity(), expression.location()));
        }
        true
    }
}

/// Returns the field at an offset of the checked unit, with its uses in the unit, if a file of the unit defines it.
pub(crate) fn member_uses_at(checker: &Checker, checked: &Checked, offset: usize) -> Option<NameUses> {
    let model = checker.semantic_model(&BString::from(checked.unit.file.as_bytes()))?;
    let at = checked.annotated.position_of(offset);
    let (name, file, location) = field_at(&model, at).or_else(|| key_at(&model, checked, at))?;
    let definition = place(checked, &file, location)?;
    let uses = member_uses(checker, checked, &definition);
    Some(NameUses { name, is_member: true, definition, uses })
}

/// Returns the name of the used field at a position, and where it is defined.
fn field_at(model: &SemanticModel<'_>, at: Position) -> Option<(String, String, Location)> {
    let named = Named::at(model.module().source()?.root(), at)?;
    let Target::Field { of, name, .. } = named.target else { return None };
    let (file, location) = field_location(model.graph(), model.expression_type(of)?.id(), name)?;
    Some((String::from_utf8_lossy(name).into_owned(), file, location))
}

/// Returns the key of a table constructor at a position.
fn key_at(model: &SemanticModel<'_>, checked: &Checked, at: Position) -> Option<(String, String, Location)> {
    let mut keys = Keys::default();
    model.module().source()?.root().visit(&mut keys);
    let (name, location) = keys.0.into_iter().find(|(_, location)| location.contains_closed(at))?;
    Some((name, checked.unit.file.clone(), location))
}

/// The keys of table constructors.
#[derive(Default)]
struct Keys(Vec<(String, Location)>);

impl<'ast> AstVisitor<'ast> for Keys {
    fn visit_table_expression(&mut self, expression: Expression<'ast>) -> bool {
        if let ExpressionKind::Table { items } = expression.kind() {
            for item in items {
                if let TableItem::Record { key, .. } = item
                    && let ExpressionKind::String { value, .. } = key.kind()
                {
                    let name = String::from_utf8_lossy(value.as_bytes()).into_owned();
                    self.0.push((name, key.location()));
                }
            }
        }
        true
    }
}

/// Returns the uses in the checked unit of the field that is defined at a place.
pub(crate) fn member_uses(checker: &Checker, checked: &Checked, definition: &Place) -> Vec<(usize, usize)> {
    let Some(model) = checker.semantic_model(&BString::from(checked.unit.file.as_bytes())) else {
        return Vec::new();
    };
    let Some(source) = model.module().source() else { return Vec::new() };
    let mut fields = Fields::default();
    source.root().visit(&mut fields);
    let is_same = |of: Expression<'_>, name: &[u8]| {
        let found = model.expression_type(of).and_then(|of| field_location(model.graph(), of.id(), name));
        let found = found.and_then(|(file, location)| place(checked, &file, location));
        found.as_ref() == Some(definition)
    };
    let used = fields.0.into_iter().filter(|(of, name, _)| is_same(*of, name));
    let mut uses: Vec<(usize, usize)> =
        used.map(|(_, _, location)| checked.annotated.span_of(location)).collect();
    if definition.file == checked.unit.file {
        uses.push(definition.span);
    }
    uses.sort_unstable();
    uses.dedup();
    uses
}

/// Returns the place of a location in a file of the unit.
fn place(checked: &Checked, file: &str, location: Location) -> Option<Place> {
    let span = if file == checked.unit.file {
        checked.annotated.span_of(location)
    } else {
        Lines::of(checked.unit.text_of(file)?).span(location)
    };
    Some(Place { file: file.to_owned(), span })
}

/// The uses of fields: the value, the name and its location.
#[derive(Default)]
struct Fields<'ast>(Vec<(Expression<'ast>, &'ast [u8], Location)>);

impl<'ast> AstVisitor<'ast> for Fields<'ast> {
    fn visit_index_name_expression(&mut self, expression: Expression<'ast>) -> bool {
        if let ExpressionKind::IndexName { expr, index, index_location, .. } = expression.kind() {
            self.0.push((expr, index.bytes(), index_location));
        }
        true
    }
}
