use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// data nested too deeply
    ///
    /// Real specs stay below 20 levels, and OpenAI rejects schemas deeper than ten. The limit protects programs
    /// against malicious spec files.
    ///
    /// ```eld fails
    /// (deftool :name "deep" :description "Take a value."
    /// :args ((:name "x" :description "It." :type string :optional t :default [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]])))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "deep" :description "Take a value."
    /// :args ((:name "x" :description "It." :type string :optional t :default "[[1]]")))
    /// ```
    pub(crate) TOO_DEEP, "DT103", "too-deep", Error
}

pub(in crate::syntax) fn finding(at: Location, most: usize) -> Diagnostic {
    Diagnostic::new(&TOO_DEEP, at, format!("data is nested more than {most} levels deep"))
}
