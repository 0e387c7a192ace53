use crate::diagnostic::{Diagnostic, rule};
use crate::schema::cost::CostError;
use crate::text::Location;

rule! {
    /// a schema with too many paths
    ///
    /// A validator follows every path through the references of a schema. Twelve definitions that each refer to the next
    /// one ten times have a million million paths. A schema may expand to at most 100,000 subschemas, counted after each
    /// reference is replaced by its target, where a `:pattern` counts as 50. Subschemas and references may be nested at
    /// most 300 levels deep. A schema without references may have any number of subschemas.
    ///
    /// Refer to a definition once, or replace repeated references by one definition that contains them.
    pub(crate) COSTLY_SCHEMA, "DT260", "costly-schema", Error
}

pub(in crate::schema) fn finding(at: Location, excess: &CostError) -> Diagnostic {
    Diagnostic::new(&COSTLY_SCHEMA, at, format!("the schema is too costly to validate: {excess}"))
}
