use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::Loss;

rule! {
    /// more tools than a target takes in one request
    ///
    /// OpenAI takes 128 and answers 400 to a request with more. Offer a worker fewer, by its `:tools`: a model chooses better among few, too.
    ///
    /// The finding stands at the first tool over the limit. Of a project DT311 says it, which knows what its workers offer.
    pub(crate) TOO_MANY_TOOLS, "DT510", "too-many-tools-for-target", Warning
}

/// The finding.
pub(crate) fn too_many_tools(loss: &Loss<'_>, limit: usize) -> Diagnostic {
    let message = format!("one tool more than the {limit} that {} takes in a request", loss.target.as_str());
    loss.start(&TOO_MANY_TOOLS, message)
}
