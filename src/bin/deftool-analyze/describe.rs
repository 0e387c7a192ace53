//! The description of a name, and where it is defined.

use deftool_script::{Description, Place, ScriptUnit};
use luau_analysis::SemanticModel;
use luau_analysis::ast::query::{ExprOrLocal, find_expr_or_local_at_position};
use luau_analysis::module::Symbol;
use luau_analysis::types::{TypeGraph, TypeId, TypeKind, get_function_name_as_string};
use luau_common::{BStr, BString};
use luau_syntax::ast::{Block, Expression, ExpressionKind, Local};
use luau_syntax::location::{Location, Position};

use crate::annotate::Annotated;
use crate::checker::{Checked, Checker};
use crate::complete::global_of;
use crate::text::Lines;
use crate::types;

/// Describes the name at an offset of the checked unit.
pub(crate) fn describe(checker: &Checker, checked: &Checked, offset: usize) -> Option<Description> {
    let model = checker.semantic_model(&BString::from(checked.unit.file.as_bytes()))?;
    let at = checked.annotated.position_of(offset);
    let named = Named::at(model.module().source()?.root(), at)?;
    let id = named.type_in(&model)?;
    let symbol = model.documentation_symbol_at(named.location.begin).map(|symbol| symbol.to_string());
    let global = symbol.as_deref().map(global_of).filter(|_| !named.is_local()).unwrap_or_default();
    Some(Description {
        span: checked.annotated.span_of(named.location),
        code: code(model.graph(), &named, id),
        global: global.to_owned(),
        definition: named.definition(&model, id, &checked.unit, &checked.annotated),
    })
}

/// A variable or a field in a source.
pub(crate) struct Named<'a> {
    /// The path of names, as in `place.name`, or the name alone.
    path: String,
    location: Location,
    pub(crate) target: Target<'a>,
}

/// What a name stands for.
pub(crate) enum Target<'a> {
    /// The declaration of a local.
    Declared(&'a Local<'a>),
    /// A use of a local.
    Local(&'a Local<'a>, Expression<'a>),
    /// A use of a global.
    Global(Expression<'a>),
    /// A field of a value.
    Field { whole: Expression<'a>, of: Expression<'a>, name: &'a [u8] },
}

impl<'a> Named<'a> {
    /// Returns what is at a position, or ends at it.
    pub(crate) fn at(root: Block<'a>, at: Position) -> Option<Self> {
        let before = Position::new(at.line, at.column.saturating_sub(1));
        Self::exactly_at(root, at).or_else(|| Self::exactly_at(root, before))
    }

    fn exactly_at(root: Block<'a>, at: Position) -> Option<Self> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let expression = match find_expr_or_local_at_position(root, at)? {
            ExprOrLocal::Local(local) => {
                let target = Target::Declared(local);
                return Some(Self { path: text(local.name.bytes()), location: local.location, target });
            }
            ExprOrLocal::Expression(expression) => expression,
        };
        let (path, location, target) = match expression.kind() {
            ExpressionKind::Local { local, .. } => {
                (text(local.name.bytes()), expression.location(), Target::Local(local, expression))
            }
            ExpressionKind::Global(name) => {
                (text(name.bytes()), expression.location(), Target::Global(expression))
            }
            ExpressionKind::IndexName { expr, index, index_location, .. } if index_location.contains(at) => {
                let path = get_function_name_as_string(expression)
                    .map_or_else(|| text(index.bytes()), |path| text(&path));
                let target = Target::Field { whole: expression, of: expr, name: index.bytes() };
                (path, index_location, target)
            }
            _ => return None,
        };
        Some(Self { path, location, target })
    }

    fn is_local(&self) -> bool {
        matches!(self.target, Target::Declared(_) | Target::Local(..))
    }

    /// Returns its type: at a use the narrowed one.
    fn type_in(&self, model: &SemanticModel<'_>) -> Option<TypeId> {
        match &self.target {
            Target::Declared(local) => declared_type(model, local),
            Target::Local(local, expression) => {
                let used = model.expression_type(*expression).map(luau_analysis::TypeRef::id);
                used.or_else(|| declared_type(model, local))
            }
            Target::Global(expression) | Target::Field { whole: expression, .. } => {
                Some(model.expression_type(*expression)?.id())
            }
        }
    }

    fn definition(
        &self,
        model: &SemanticModel<'_>,
        id: TypeId,
        unit: &ScriptUnit,
        annotated: &Annotated,
    ) -> Option<Place> {
        let (file, at) = match &self.target {
            Target::Declared(local) | Target::Local(local, _) => (unit.file.clone(), local.location),
            Target::Global(_) => return None,
            Target::Field { of, name, .. } => {
                let of = model.expression_type(*of)?.id();
                field_location(model.graph(), of, name).or_else(|| function_location(model.graph(), id))?
            }
        };
        let span =
            if file == unit.file { annotated.span_of(at) } else { Lines::of(unit.text_of(&file)?).span(at) };
        Some(Place { file, span })
    }
}

/// Returns the type with which a local was declared.
pub(crate) fn declared_type(model: &SemanticModel<'_>, local: &Local<'_>) -> Option<TypeId> {
    let symbol = Symbol::local(local);
    let mut scopes = model.located_scopes();
    scopes.find_map(|(_, scope)| Some(model.scopes().get(*scope).bindings.get(&symbol)?.type_id))
}

/// Returns the file and the location of a field in the table that defines it.
pub(crate) fn field_location(graph: &TypeGraph<'_>, of: TypeId, name: &[u8]) -> Option<(String, Location)> {
    let table = match graph.kind(graph.follow_type(of)) {
        TypeKind::Table(table) => table,
        TypeKind::Metatable(both) => graph.table_type(both.table)?,
        _ => return None,
    };
    let property = table.props.get(BStr::new(name))?;
    let at = property.location.filter(|at| *at != Location::default())?;
    Some((table.definition_module_name.to_string(), at))
}

/// Returns the file and the location of the name of a function.
fn function_location(graph: &TypeGraph<'_>, id: TypeId) -> Option<(String, Location)> {
    let functions = types::functions(graph, id);
    let definition = functions.first()?.definition.as_ref()?;
    let file = definition.definition_module_name.as_ref()?.to_string();
    Some((file, definition.definition_location))
}

/// Returns the declaration of a name in Luau.
fn code(graph: &TypeGraph<'_>, named: &Named<'_>, id: TypeId) -> String {
    let functions = types::functions(graph, id);
    if functions.is_empty() {
        let local = if named.is_local() { "local " } else { "" };
        return format!("{local}{}: {}", named.path, types::text_of(graph, id));
    }
    let text = |function| {
        let text = graph.stringify_named_function_with_options(&named.path, function, &mut types::options());
        format!("function {text}")
    };
    functions.into_iter().map(text).collect::<Vec<_>>().join("\n")
}
