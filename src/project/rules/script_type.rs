use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a script whose types do not fit (`check --types`)
    ///
    /// What Luau's type checker says of a script, where the parameters have the types that the spec gives the arguments and the
    /// host tables those of `deftool types`. Told by `deftool check --types` alone. A script that the checker is wrong about
    /// can say `--!nonstrict`, or `--!nocheck`, in its first line.
    pub(crate) SCRIPT_TYPE, "DT427", "script-type", Warning
}

pub(in crate::project) fn finding(at: Location, message: &str) -> Diagnostic {
    Diagnostic::new(&SCRIPT_TYPE, at, message)
}
