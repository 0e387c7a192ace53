//! Comparison of two texts except for their layout.

use super::super::tree::{Kind, Tree};
use super::gap::without_blanks_after;

/// Whether both texts have the same forms with the same tokens, and differ in whitespace only.
pub(super) fn is_same(before: (&Tree, &str), after: (&Tree, &str)) -> bool {
    is_same_but_for_blanks(before.1, after.1)
        && tokens(before).eq(tokens(after))
        && comments(before).eq(comments(after))
}

fn is_same_but_for_blanks(before: &str, after: &str) -> bool {
    let words = |text: &str| text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect::<Vec<u8>>();
    words(before) == words(after)
}

/// Returns the kind and the subtree end of each node, with the text of each token.
fn tokens<'t>((tree, text): (&'t Tree, &'t str)) -> impl Iterator<Item = (Kind, u32, &'t str)> {
    tree.nodes.iter().enumerate().map(move |(index, node)| {
        let is_leaf = node.end as usize == index + 1;
        let is_bracket = matches!(node.kind, Kind::List | Kind::Vector);
        (node.kind, node.end, if is_leaf && !is_bracket { node.span.of(text) } else { "" })
    })
}

fn comments<'t>((tree, text): (&'t Tree, &'t str)) -> impl Iterator<Item = &'t str> {
    tree.comments().iter().map(move |comment| without_blanks_after(comment.of(text)))
}
