use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::{ToolLimitation, description_for};

rule! {
    /// a description longer than a target allows
    ///
    /// OpenAI's chat API answers 400 to the whole request if a tool's description has more than 1,024 characters. Set a
    /// shorter description for this target only in `:targets`.
    ///
    /// ```eld for-openai fails
    /// (deftool :name "now" :description "Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well. Tell the time, and when asked for it the day of the week as well.")
    /// ```
    ///
    /// ```eld for-openai repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    pub(crate) DESCRIPTION_TOO_LONG, "DT509", "description-too-long", Warning
}

pub(crate) fn description_too_long(limitation: &ToolLimitation<'_>, limit: usize) -> Diagnostic {
    let length = description_for(limitation.target, limitation.tool).0.chars().count();
    let message = format!(
        "description has {length} characters; {} allows at most {limit}",
        limitation.target.as_str()
    );
    limitation.start(&DESCRIPTION_TOO_LONG, message)
}
