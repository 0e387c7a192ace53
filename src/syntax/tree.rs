//! The tree the reader makes: one flat array in source order.
//!
//! A node knows where its subtree ends, so that its children are found without pointers, a tree of any depth is
//! dropped in one step, and walking it needs no recursion.

use crate::text::Span;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `( … )`
    List,
    /// `[ … ]`
    Vector,
    /// The dot of a dotted pair, between its neighbours.
    Dot,
    /// A symbol.
    Symbol,
    /// A symbol that begins with a colon.
    Keyword,
    /// `"…"`
    String,
    /// `12`, `+3.`, `#x1f`
    Integer,
    /// `1.5`, `1e3`
    Float,
    /// `?a`
    Character,
    /// `'x`
    Quote,
    /// `#'x`
    Function,
    /// `` `x ``
    Backquote,
    /// `,x`
    Unquote,
    /// `,@x`
    Splice,
    /// Reader syntax that no constant has: `#s(…)`, `#[…]`, `#1=x`, `#1#`, `#:x`, `#&8"…"`, `#$`. Its children
    /// are what stands inside.
    Opaque,
}

impl Kind {
    /// Whether it takes exactly one form after it.
    pub fn is_prefix(self) -> bool {
        match self {
            Self::Quote | Self::Function | Self::Backquote | Self::Unquote | Self::Splice => true,
            Self::List
            | Self::Vector
            | Self::Dot
            | Self::Symbol
            | Self::Keyword
            | Self::String
            | Self::Integer
            | Self::Float
            | Self::Character
            | Self::Opaque => false,
        }
    }

    /// Whether it is one word, which holds no form of its own (an [`Kind::Opaque`] may).
    pub(super) fn is_token(self) -> bool {
        !self.is_prefix() && !matches!(self, Self::List | Self::Vector)
    }
}

/// A node by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) span: Span,
    /// Number of the first node after this one's subtree.
    pub(super) end: u32,
}

/// A source, read.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) comments: Vec<Span>,
    pub(super) faults: Faults,
}

/// Where reading went wrong, so that a form finds its own however many there are.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults {
    /// In the order they were found, until [`Faults::settle`].
    found: Vec<(Span, Fault)>,
    /// By where they start.
    sorted: Vec<FaultMark>,
    /// Top-level forms right after which something is closed that was not open, in order.
    pub(super) overclosed: Vec<Span>,
}

#[derive(Debug, Clone, Copy)]
struct FaultMark {
    start: u32,
    /// The furthest end of this and all before it.
    reach: u32,
    /// The furthest end of those among them that are [`Fault::Misnested`].
    misnested_reach: u32,
}

impl Faults {
    pub(super) fn push(&mut self, span: Span, fault: Fault) {
        self.found.push((span, fault));
    }

    /// Reading is over.
    pub(super) fn settle(&mut self) {
        let mut found = std::mem::take(&mut self.found);
        found.sort_unstable_by_key(|(span, _)| span.start);
        let (mut reach, mut misnested_reach) = (0, 0);
        self.sorted = found
            .into_iter()
            .map(|(Span { start, end }, fault)| {
                // One that is empty lies in the form that starts where it is.
                reach = reach.max(end.max(start + 1));
                if fault == Fault::Misnested {
                    misnested_reach = misnested_reach.max(end.max(start + 1));
                }
                FaultMark { start, reach, misnested_reach }
            })
            .collect();
    }

    /// The worst that touches `span`.
    fn worst_in(&self, span: Span) -> Option<Fault> {
        let before_end = self.sorted.partition_point(|mark| mark.start < span.end);
        let mark = self.sorted.get(before_end.checked_sub(1)?)?;
        if mark.misnested_reach > span.start {
            Some(Fault::Misnested)
        } else {
            (mark.reach > span.start).then_some(Fault::Misread)
        }
    }
}

/// What the reader could not make sense of inside a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// An atom is not what was meant; the form's structure is.
    Misread,
    /// Something is not closed or closed too often: what stands in the form and what after it is a guess.
    Misnested,
}

impl Tree {
    /// The top-level forms.
    pub fn roots(&self) -> Children<'_> {
        Children { tree: self, next: 0, end: self.nodes.len() as u32 }
    }

    /// The forms directly inside `id`.
    pub fn children(&self, id: NodeId) -> Children<'_> {
        let end = self.nodes.get(id.0 as usize).map_or(id.0, |node| node.end);
        Children { tree: self, next: id.0 + 1, end }
    }

    /// What `id` is.
    pub fn kind(&self, id: NodeId) -> Kind {
        self.nodes.get(id.0 as usize).map_or(Kind::Opaque, |node| node.kind)
    }

    /// Where `id` stands.
    pub fn span(&self, id: NodeId) -> Span {
        self.nodes.get(id.0 as usize).map_or(Span::default(), |node| node.span)
    }

    /// Every node in source order, parents before children.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The node after the subtree of `id`, at whatever depth.
    pub fn next(&self, id: NodeId) -> Option<NodeId> {
        let end = self.nodes.get(id.0 as usize)?.end;
        ((end as usize) < self.nodes.len()).then_some(NodeId(end))
    }

    /// The comments, in source order, each without its line end.
    pub fn comments(&self) -> &[Span] {
        &self.comments
    }

    /// The worst that reading found wrong inside `id`.
    pub fn fault(&self, id: NodeId) -> Option<Fault> {
        self.faults.worst_in(self.span(id))
    }

    /// Whether `id` stands in a form with more closing parentheses than opening ones, so that one of these may be
    /// missing in it.
    pub fn is_overclosed(&self, id: NodeId) -> bool {
        let start = self.span(id).start;
        let next = self.faults.overclosed.partition_point(|form| form.start <= start);
        let form = next.checked_sub(1).and_then(|index| self.faults.overclosed.get(index));
        form.is_some_and(|form| start < form.end)
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no form at all.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

/// Sibling nodes, in source order.
#[derive(Debug, Clone)]
pub struct Children<'t> {
    tree: &'t Tree,
    next: u32,
    end: u32,
}

impl Iterator for Children<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        if self.next >= self.end {
            return None;
        }
        let id = NodeId(self.next);
        self.next = self.tree.nodes.get(self.next as usize).map_or(self.end, |node| node.end);
        Some(id)
    }
}
