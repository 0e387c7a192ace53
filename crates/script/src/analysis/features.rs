//! What an analyzer returns for an editor. Spans are byte offsets.

use serde::{Deserialize, Serialize};

/// The names that can be inserted at a position.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggestions {
    /// The names, sorted.
    pub items: Vec<Suggestion>,
    /// Whether the position is in a string, whose content they replace.
    pub in_string: bool,
}

/// A name that can be inserted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggestion {
    /// The name, or the text of a value.
    pub name: String,
    /// The kind.
    pub kind: SuggestionKind,
    /// The type. May be empty.
    pub type_text: String,
    /// The global that it is, as in `fs.read`. May be empty.
    pub global: String,
}

/// The kind of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuggestionKind {
    /// A known value, such as a string of an enum.
    Value,
    /// A field that is not a function.
    Field,
    /// A variable or global that is not a function.
    Variable,
    /// A function or method.
    Function,
    /// A type.
    Type,
    /// A keyword.
    Keyword,
}

/// The description of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The name in the text.
    pub span: (usize, usize),
    /// The declaration in Luau, with the type.
    pub code: String,
    /// The global that it is, as in `fs.read`. May be empty.
    pub global: String,
    /// Where it is defined, if that is in a file of the unit.
    pub definition: Option<Place>,
}

/// A span in a file of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file of the unit or of a module.
    pub file: String,
    /// The span.
    pub span: (usize, usize),
}

/// A name with its uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameUses {
    /// The name.
    pub name: String,
    /// Whether it is a field of a table, which other files may use. If not, it is a local.
    pub is_member: bool,
    /// Where it is defined.
    pub definition: Place,
    /// The spans in the text of the unit, with the definition, sorted.
    pub uses: Vec<(usize, usize)>,
}

/// A function, variable or test in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutlineItem {
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: OutlineKind,
    /// The whole item.
    pub span: (usize, usize),
    /// The name in it.
    pub name_span: (usize, usize),
}

/// The kind of an [`OutlineItem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutlineKind {
    /// A function.
    Function,
    /// A variable at the top level.
    Variable,
    /// A test of a test script.
    Test,
}

/// A text to show beside a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inlay {
    /// The offset.
    pub offset: usize,
    /// The text.
    pub label: String,
}

/// A name in a text, with its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameToken {
    /// The span of the name.
    pub span: (usize, usize),
    /// The meaning.
    pub meaning: TokenMeaning,
}

/// The meaning of a [`NameToken`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenMeaning {
    /// A parameter.
    Parameter,
    /// Another local.
    Variable,
    /// A function that is called or defined.
    Function,
    /// A field.
    Field,
}

/// The signatures of the function in whose arguments a position is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signatures {
    /// The signatures, several if the function is overloaded.
    pub labels: Vec<SignatureLabel>,
    /// The index of the argument at the position.
    pub active_parameter: usize,
    /// The global that the function is, as in `fs.read`. May be empty.
    pub global: String,
}

/// The text of a signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureLabel {
    /// The name, the parameters and the results.
    pub text: String,
    /// The spans of the parameters in `text`.
    pub parameters: Vec<(usize, usize)>,
}
