//! Analysis of scripts: type findings, and what an editor shows.
//!
//! [`ScriptAnalyzer`] is the interface. Its implementation is the program `deftool-analyze`, a second binary of this
//! package behind the feature `analyze`: it links another Luau, uses deep recursion, and is younger than the rest. So it
//! runs in its own process, with the limits of a script host, and is killed when a script takes too long
//! ([`AnalyzerProcess`]). Nothing of it is linked into `deftool`, and it can be replaced by any program that answers the
//! same messages ([`serve_analyzer`]): one line of JSON for each line of JSON, first a greeting with the version.
//!
//! Input: the definitions of a project ([`definitions`](crate::definitions)), and a [`ScriptUnit`]. Output is used only
//! for the unit that was analysed, after it was validated: the program is not trusted.

mod batch;
mod features;
mod model;
mod process;
mod protocol;
mod serve;

pub use batch::check_types;
pub use features::{
    Description, Inlay, NameToken, NameUses, OutlineItem, OutlineKind, Place, SignatureLabel, Signatures,
    Suggestion, SuggestionKind, Suggestions, TokenMeaning,
};
pub use model::{Definitions, ModuleText, ScriptUnit, TypeProblem};
pub use process::{AnalyzerProcess, TYPE_LIMIT};
pub use serve::serve_analyzer;

/// The result of an analysis, or the reason why there is none, one clause.
pub type Analysed<T> = Result<T, String>;

/// Analysis of scripts with the types of a project.
pub trait ScriptAnalyzer {
    /// Sets the definitions, before anything else and when they change.
    ///
    /// # Errors
    /// When they are invalid.
    fn define(&mut self, definitions: &Definitions) -> Analysed<()>;

    /// Returns the type errors of a unit and of the modules that it requires.
    ///
    /// # Errors
    /// When the unit cannot be checked.
    fn check(&mut self, unit: &ScriptUnit) -> Analysed<Vec<TypeProblem>>;

    /// Returns the names that can be inserted at an offset of the text.
    ///
    /// # Errors
    /// When the unit cannot be analysed.
    fn complete(&mut self, unit: &ScriptUnit, offset: usize) -> Analysed<Suggestions>;

    /// Describes the variable or field at an offset.
    ///
    /// # Errors
    /// When the unit cannot be analysed.
    fn describe(&mut self, unit: &ScriptUnit, offset: usize) -> Analysed<Option<Description>>;

    /// Returns the signatures of the function in whose arguments an offset is.
    ///
    /// # Errors
    /// When the unit cannot be analysed.
    fn signatures(&mut self, unit: &ScriptUnit, offset: usize) -> Analysed<Option<Signatures>>;

    /// Returns the local or field at an offset with its uses in the unit.
    ///
    /// # Errors
    /// When the unit cannot be analysed.
    fn uses(&mut self, unit: &ScriptUnit, offset: usize) -> Analysed<Option<NameUses>>;

    /// Returns the uses in the unit of the field that is defined at a place.
    ///
    /// # Errors
    /// When the unit cannot be analysed.
    fn member_uses(&mut self, unit: &ScriptUnit, definition: &Place) -> Analysed<Vec<(usize, usize)>>;

    /// Returns the functions, variables and tests of the text, outer ones first.
    ///
    /// # Errors
    /// When the unit cannot be analysed.
    fn outline(&mut self, unit: &ScriptUnit) -> Analysed<Vec<OutlineItem>>;

    /// Returns the inferred types of variables.
    ///
    /// # Errors
    /// When the unit cannot be analysed.
    fn inlays(&mut self, unit: &ScriptUnit) -> Analysed<Vec<Inlay>>;

    /// Returns the names of the text with their meanings, in order and without overlaps.
    ///
    /// # Errors
    /// When the unit cannot be analysed.
    fn tokens(&mut self, unit: &ScriptUnit) -> Analysed<Vec<NameToken>>;
}
