use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an integer beyond 64 bits
    ///
    /// JSON parsers support integers of at most 64 bits, some only 53 bits. The number is sent as the nearest float;
    /// Emacs before version 30 rejects it.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer :maximum 99999999999999999999)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer :maximum 9223372036854775807)))
    /// ```
    pub(crate) INEXACT_NUMBER, "DT215", "inexact-number", Warning
}

pub(in crate::spec) fn finding(at: Location, sent: f64) -> Diagnostic {
    let message = format!("the integer does not fit into 64 bits and is sent as the nearest float {sent:e}");
    Diagnostic::new(&INEXACT_NUMBER, at, message)
}
