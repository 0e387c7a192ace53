//! What the keywords of a JSON Schema hold: types, further schemas, or data that is nobody's schema.

/// What the value of a keyword is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// A type, or an array of types.
    Types,
    /// A schema; for some keywords an array of them may stand there, too.
    Schema,
    /// An array of schemas.
    Schemas,
    /// An object of names to schemas.
    Named,
    /// Anything.
    Data,
}

impl Holds {
    /// What `keyword` holds.
    pub(crate) fn of(keyword: &str) -> Self {
        match keyword {
            "type" => Self::Types,
            "items"
            | "additionalProperties"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties" => Self::Schema,
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => Self::Schemas,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => Self::Named,
            _ => Self::Data,
        }
    }
}
