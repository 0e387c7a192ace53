use crate::diagnostic::{Diagnostic, rule};
use crate::schema::cost::CostError;
use crate::text::Location;

rule! {
    /// a schema with too many paths
    ///
    /// A validator follows every path through the references of a schema. Twelve definitions that each refer to the next
    /// one ten times have a million million paths. At most 100,000 subschemas may apply to the values on one path through
    /// an instance, counted after each reference is replaced by its target. Different members and items are on different
    /// paths. Subschemas and references may be nested at most 300 levels deep, and must not lead back to the same value.
    /// A recursive schema has no limit; the values that it accepts have.
    ///
    /// Refer to a definition once, or replace repeated references by one definition that contains them.
    pub(crate) COSTLY_SCHEMA, "DT260", "costly-schema", Error
}

pub(in crate::schema) fn finding(at: Location, excess: &CostError) -> Diagnostic {
    Diagnostic::new(&COSTLY_SCHEMA, at, format!("the schema is too costly to validate: {excess}"))
}
