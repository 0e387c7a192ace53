use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an integer beyond 64 bits
    ///
    /// JSON readers keep 64 bits of an integer or 53 of any number. It is sent as the nearest float; Emacs before 30 refuses it.
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
    let message = format!("an integer beyond 64 bits; sent as the nearest float {sent:e}");
    Diagnostic::new(&INEXACT_NUMBER, at, message)
}
