//! What scripts' authors are told of the host tables; beside each table's code stands its [`TableDoc`].
//!
//! `docs/scripting.md` and the Luau definitions that editors read are made from these, and a test holds them to what a
//! script finds in the tables.

/// A host table: a global of every script.
#[derive(Debug, Clone, Copy)]
pub struct TableDoc {
    /// The global's name.
    pub name: &'static str,
    /// What it is for; Markdown, a paragraph or more.
    pub about: &'static str,
    /// The keys of `:allow` that its functions need, as in `read`.
    pub permissions: &'static [&'static str],
    /// Luau type aliases that the signatures use, as `type FileInfo = { … }` lines; empty for most tables.
    pub types: &'static str,
    /// Fields that are no functions.
    pub values: &'static [ValueDoc],
    /// Functions, in the order in which they are explained.
    pub functions: &'static [FunctionDoc],
}

/// A field of a host table.
#[derive(Debug, Clone, Copy)]
pub struct ValueDoc {
    /// Its name.
    pub name: &'static str,
    /// Its Luau type.
    pub luau_type: &'static str,
    /// What it is.
    pub about: &'static str,
}

/// A function of a host table.
#[derive(Debug, Clone, Copy)]
pub struct FunctionDoc {
    /// Its name.
    pub name: &'static str,
    /// Its Luau type, as in `(path: string) -> string`.
    pub signature: &'static str,
    /// What it does, with units; Markdown.
    pub about: &'static str,
    /// When it raises an error, and what its limits are; Markdown. Misuse (a number for a string) need not be told.
    pub errors: &'static str,
    /// A line or more of Luau; empty where the signature says enough.
    pub example: &'static str,
    /// The keys of `:allow` of which one is enough, as in `read`; without any of them it is refused. None: it needs none.
    pub permissions: &'static [&'static str],
}

impl FunctionDoc {
    /// A function that needs no permission, no words about errors and no example.
    pub(super) const fn new(name: &'static str, signature: &'static str, about: &'static str) -> Self {
        Self { name, signature, about, errors: "", example: "", permissions: &[] }
    }

    pub(super) const fn fails(self, errors: &'static str) -> Self {
        Self { errors, ..self }
    }

    pub(super) const fn as_in(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    /// With the keys of `:allow` of which it needs one; they are its table's.
    pub(super) const fn needs(self, permissions: &'static [&'static str]) -> Self {
        Self { permissions, ..self }
    }
}

impl TableDoc {
    pub(super) const fn new(name: &'static str, about: &'static str) -> Self {
        Self { name, about, permissions: &[], types: "", values: &[], functions: &[] }
    }
}
