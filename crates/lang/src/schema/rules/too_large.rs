use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::ToolLimitation;

rule! {
    /// a tool with parameters larger than a target allows
    ///
    /// Strict mode has limits for a whole schema: 5,000 properties, 1,000 enum values, 120,000 characters of names and
    /// values. A larger schema causes a 400 for the whole request, so the tool is omitted for that target. Split the
    /// tool, or validate a long list of values in the script.
    pub(crate) TOO_LARGE, "DT511", "too-large-for-target", Error
}

pub(crate) fn too_large(limitation: &ToolLimitation<'_>) -> Diagnostic {
    let message = format!("the parameters of `{}` are too large for {}: {}", limitation.tool.name.value, limitation.target.as_str(), limitation.subject());
    limitation.start(&TOO_LARGE, message)
}
