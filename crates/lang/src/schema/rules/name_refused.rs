use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::ToolLimitation;

rule! {
    /// a name that a target rejects
    ///
    /// Tool names are checked against the rules that all APIs share. Some APIs have further rules: Gemini requires a
    /// leading letter, and Anthropic also restricts the names of arguments. One invalid name causes a 400 for the whole
    /// request.
    ///
    /// ```eld for-gemini fails
    /// (deftool :name "7z" :description "Pack a folder.")
    /// ```
    ///
    /// ```eld for-gemini repaired
    /// (deftool :name "pack_7z" :description "Pack a folder.")
    /// ```
    pub(crate) NAME_REFUSED, "DT508", "name-refused-by-target", Warning
}

pub(crate) fn name_refused(limitation: &ToolLimitation<'_>) -> Diagnostic {
    let message = format!("{} rejects the name `{}`", limitation.target.as_str(), limitation.word);
    limitation.start(&NAME_REFUSED, message)
}
