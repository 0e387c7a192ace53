//! Documentation of the host tables. Each table's [`TableDoc`] is next to its code.
//!
//! `docs/scripting.md` and the Luau type definitions for editors are generated from them. A test compares them with the
//! actual tables.

/// The documentation of a host table, a global of every script.
#[derive(Debug, Clone, Copy)]
pub struct TableDoc {
    /// The global's name.
    pub name: &'static str,
    /// The purpose of the table, in Markdown.
    pub about: &'static str,
    /// The keys of `:allow` that its functions require, such as `read`.
    pub permissions: &'static [&'static str],
    /// Luau type aliases for the signatures, as `type FileInfo = { … }` lines. Empty for most tables.
    pub types: &'static str,
    /// Fields that are not functions.
    pub values: &'static [ValueDoc],
    /// Functions, in documentation order.
    pub functions: &'static [FunctionDoc],
}

/// The documentation of a field of a host table.
#[derive(Debug, Clone, Copy)]
pub struct ValueDoc {
    /// The name.
    pub name: &'static str,
    /// The Luau type.
    pub luau_type: &'static str,
    /// The description.
    pub about: &'static str,
}

/// The documentation of a function of a host table.
#[derive(Debug, Clone, Copy)]
pub struct FunctionDoc {
    /// The name.
    pub name: &'static str,
    /// The Luau type, such as `(path: string) -> string`.
    pub signature: &'static str,
    /// The description with units, in Markdown.
    pub about: &'static str,
    /// Errors and limits, in Markdown. Arguments of the wrong type are not listed.
    pub errors: &'static str,
    /// An example in Luau, or empty.
    pub example: &'static str,
    /// The keys of `:allow`, one of which is required, such as `read`. Empty if no permission is required.
    pub permissions: &'static [&'static str],
    /// Further keys of `:allow` that some of its options require.
    pub option_permissions: &'static [&'static str],
}

impl FunctionDoc {
    /// Creates the documentation of a function without errors, example and permissions.
    pub(super) const fn new(name: &'static str, signature: &'static str, about: &'static str) -> Self {
        Self { name, signature, about, errors: "", example: "", permissions: &[], option_permissions: &[] }
    }

    pub(super) const fn with_errors(self, errors: &'static str) -> Self {
        Self { errors, ..self }
    }

    pub(super) const fn with_example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    /// Sets the keys of `:allow`, one of which is required. They must be among the table's keys.
    pub(super) const fn with_permissions(self, permissions: &'static [&'static str]) -> Self {
        Self { permissions, ..self }
    }

    pub(super) const fn with_option_permissions(self, option_permissions: &'static [&'static str]) -> Self {
        Self { option_permissions, ..self }
    }
}

impl TableDoc {
    pub(super) const fn new(name: &'static str, about: &'static str) -> Self {
        Self { name, about, permissions: &[], types: "", values: &[], functions: &[] }
    }
}
