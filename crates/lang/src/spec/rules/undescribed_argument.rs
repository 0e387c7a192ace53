use crate::diagnostic::{Diagnostic, rule};
use crate::spec::Argument;
use crate::text::{Location, SourceId};

rule! {
    /// an argument without a description
    ///
    /// The model chooses the value of an argument by its name and description.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "path" :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "path" :description "The file to read, relative to the project." :type string)))
    /// ```
    pub(crate) UNDESCRIBED_ARGUMENT, "DT259", "undescribed-argument", Warning
}

pub(in crate::spec) fn finding(source: SourceId, argument: &Argument) -> Diagnostic {
    let at = Location { source, span: argument.name.span };
    let message = format!("argument `{}` has no `:description`", argument.name.value);
    Diagnostic::new(&UNDESCRIBED_ARGUMENT, at, message)
}
