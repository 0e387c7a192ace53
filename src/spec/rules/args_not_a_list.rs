use crate::diagnostic::{Diagnostic, rule};
use crate::syntax::Datum;
use crate::text::Location;

rule! {
    /// :args that is not a list of argument plists
    ///
    /// gptel walks `:args` as a list and takes each element for a plist: a vector, a single plist or a loose value ends in a Lisp error
    /// or in arguments without a name.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args [(:name "x" :description "An x." :type string)])
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string)))
    /// ```
    pub(crate) ARGS_NOT_A_LIST, "DT201", "args-not-a-list", Error
}

/// `:args` as a whole is no list.
pub(in crate::spec) fn finding(at: Location, found: &Datum) -> Diagnostic {
    let message = format!("`:args` takes a list of argument plists, found {}", found.describe());
    Diagnostic::new(&ARGS_NOT_A_LIST, at, message).note("write `:args ((:name \"…\" :type string) …)`")
}

/// `:args` is one argument's plist.
pub(in crate::spec) fn single(at: Location) -> Diagnostic {
    let message = "`:args` takes a list of argument plists, found a single plist";
    Diagnostic::new(&ARGS_NOT_A_LIST, at, message).note("wrap it in one more pair of parentheses")
}

/// An element of `:args` is no plist.
pub(in crate::spec) fn element(at: Location, found: &Datum) -> Diagnostic {
    let message = format!("an argument is a plist `(:name \"…\" :type …)`, found {}", found.describe());
    Diagnostic::new(&ARGS_NOT_A_LIST, at, message)
}
