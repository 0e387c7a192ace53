//! The parameters of an inline `:function`.

use crate::syntax::{Kind, NodeId, Tree};
use crate::text::Span;

/// The parameters of a lambda.
pub(super) struct Parameters {
    /// Span of the parameter list.
    pub(super) span: Span,
    /// The parameter names, including optional ones, without `&rest`.
    pub(super) names: Vec<String>,
    /// Number of required parameters.
    pub(super) required: usize,
    /// Whether there is a rest parameter.
    pub(super) has_rest: bool,
}

/// Returns the parameters of `node` if it is `(lambda …)`, with or without a function quote.
pub(super) fn parameters_of(tree: &Tree, text: &str, node: NodeId) -> Option<Parameters> {
    let is_named =
        |node: NodeId, name: &str| tree.kind(node) == Kind::Symbol && tree.text(node, text) == name;
    let head = tree.children(node).next();
    let lambda = if matches!(tree.kind(node), Kind::Function | Kind::Quote) {
        head?
    } else if tree.kind(node) == Kind::List && head.is_some_and(|head| is_named(head, "function")) {
        tree.children(node).nth(1)?
    } else {
        node
    };
    let mut parts = tree.children(lambda);
    let head = parts.next().filter(|_| tree.kind(lambda) == Kind::List)?;
    let list = parts.next().filter(|_| is_named(head, "lambda"))?;
    if tree.kind(list) != Kind::List && !is_named(list, "nil") {
        return None;
    }
    let mut parameters =
        Parameters { span: tree.span(list), names: Vec::new(), required: 0, has_rest: false };
    let mut is_optional = false;
    for parameter in tree.children(list) {
        match tree.text(parameter, text) {
            _ if tree.kind(parameter) != Kind::Symbol => return None,
            "&optional" => is_optional = true,
            "&rest" => {
                parameters.has_rest = true;
                break;
            }
            // Syntax of other Lisps or of a macro.
            word if word.starts_with('&') => return None,
            name => {
                parameters.names.push(name.to_owned());
                parameters.required += usize::from(!is_optional);
            }
        }
    }
    Some(parameters)
}
