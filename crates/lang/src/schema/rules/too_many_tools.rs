use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::ToolLimitation;

rule! {
    /// more tools than a target allows in one request
    ///
    /// OpenAI allows 128 tools and answers 400 to a request with more. Offer fewer tools in the worker's `:tools`;
    /// models also choose more reliably among fewer tools.
    ///
    /// The finding is at the first tool over the limit. In a project, DT311 reports this per worker instead.
    pub(crate) TOO_MANY_TOOLS, "DT510", "too-many-tools-for-target", Warning
}

pub(crate) fn too_many_tools(limitation: &ToolLimitation<'_>, limit: usize) -> Diagnostic {
    let message = format!("more than {limit} tools; {} allows at most {limit} in a request", limitation.target.as_str());
    limitation.start(&TOO_MANY_TOOLS, message)
}
