use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::Loss;

rule! {
    /// a tool whose parameters are together larger than a target takes
    ///
    /// Strict mode counts over a whole schema: 5,000 properties, 1,000 enum values, 120,000 characters of names and values. A larger schema is a 400 to the whole request, so the tool is left out for that target. Part it into several, or leave a long list of values to the script.
    pub(crate) TOO_LARGE, "DT511", "too-large-for-target", Error
}

/// The finding.
pub(crate) fn too_large(loss: &Loss<'_>) -> Diagnostic {
    let message = format!("the parameters of `{}` are too large for {}: {}", loss.tool.name.value, loss.target.as_str(), loss.subject());
    loss.start(&TOO_LARGE, message)
}
