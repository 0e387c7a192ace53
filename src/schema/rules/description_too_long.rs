use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::{Loss, description_for};

rule! {
    /// a description longer than a target takes
    ///
    /// OpenAI's chat API answers 400 to the whole request when a tool's description has more than 1,024 characters. A shorter one for that target alone stands in `:targets`.
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

/// The finding.
pub(crate) fn description_too_long(loss: &Loss<'_>, limit: usize) -> Diagnostic {
    let length = description_for(loss.target, loss.tool).0.chars().count();
    let message = format!(
        "a description of {length} characters; {} takes {limit}",
        loss.target.as_str()
    );
    loss.start(&DESCRIPTION_TOO_LONG, message)
}
