//! Editor features for projects, as plain data: findings, completion, hover, navigation, rename and more.
//!
//! A [`Project`] holds the files of a project and the unsaved texts of an editor. Each feature is a function of a
//! project, a path and a byte offset, and returns plain structs with byte spans. `deftool-lsp` converts them to the
//! Language Server Protocol. Nothing here executes a script, or reads or writes a file: `deftool-project` reads files.
//!
//! ```
//! use std::sync::Arc;
//!
//! use deftool_ide::{Project, completions};
//! use deftool_project::LoadOptions;
//!
//! let root = std::path::absolute("../../examples/quickstart")?;
//! let mut project = Project::open(&root, LoadOptions::default(), || ());
//! let path = root.join("specs/unsaved.eld");
//! project.set_text(&path, Some(Arc::from(r#"(deftool :name "now" :de)"#)));
//! project.refresh()?;
//! let found = completions(&project, &path, 24);
//! assert!(found.items.iter().any(|completion| completion.label == ":description"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `project` | the state of a project in an editor |
//! | `outline` | the meaning of each part of a spec file |
//! | `model` | what has a name: tools, arguments, workers |
//! | `arguments` | the arguments of the tool that a call is for |
//! | `entity` | tools, arguments and workers, and what refers to them in specs and scripts |
//! | `usages` | tools and arguments in test scripts and scenarios |
//! | `script` | features of scripts that need an analyzer |
//! | the others | one feature each |

mod actions;
mod arguments;
mod completion;
mod entity;
mod formatting;
mod highlights;
mod hints;
mod hover;
mod model;
mod outline;
mod project;
mod rename;
mod script;
mod signature;
mod structure;
mod symbols;
mod tokens;
mod usages;

pub use actions::{Action, RuleFixes, actions, fix_all, fixes_of_rules};
pub use completion::{Completion, CompletionKind, Completions, completions};
pub use entity::{definition, references};
pub use formatting::format;
pub use highlights::{Highlight, highlights};
pub use hints::{Hint, Lens, LensKind, hints, lenses};
pub use hover::{Hover, hover};
pub use project::{FileSpan, Language, Project};
pub use rename::{Rename, RenameError, rename, rename_target};
pub use script::{
    CallSignature, CallSignatures, ProjectUses, ScriptTypes, call_signatures, description, other_units,
    script_symbols, script_tokens, script_unit, string_completions, suggestions,
};
pub use signature::{Signature, SignatureKey, signature};
pub use structure::{folds, selections};
pub use symbols::{Symbol, SymbolKind, project_symbols, symbols};
pub use tokens::{Token, TokenKind, tokens};
pub use usages::Unedited;
