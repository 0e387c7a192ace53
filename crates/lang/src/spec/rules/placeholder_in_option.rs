use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a placeholder in an option that may contain code
    ///
    /// Many programs execute the value of an option such as `-c`, `-e`, `--eval`, `--command` or `--exec`, so the model could
    /// run anything. If the program reads data there, add the line `;; deftool: allow(placeholder-in-option)`.
    ///
    /// ```eld fails
    /// (deftool :name "query" :description "Query the database." :command ["dbclient" "-e" "{query}"]
    ///  :args ((:name "query" :description "The query." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "query" :description "Query the database." :command ["dbclient" "--table" "{table}"]
    ///  :args ((:name "table" :description "The table." :type string)))
    /// ```
    pub(crate) PLACEHOLDER_IN_OPTION, "DT146", "placeholder-in-option", Warning
}

pub(in crate::spec) fn finding(at: Location, program: &str, option: &str) -> Diagnostic {
    let message = format!("the value of a placeholder could be code: `{option}` of `{program}`");
    Diagnostic::new(&PLACEHOLDER_IN_OPTION, at, message)
        .note("pass the value in another way, or allow this rule if the program does not execute it")
}
