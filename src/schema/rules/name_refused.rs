use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::Loss;

rule! {
    /// a name that a target refuses
    ///
    /// Names of tools are checked everywhere for what all APIs take; some ask for more, as Gemini for a letter in front, or hold the names of arguments to a pattern, too, as Anthropic. One such name is a 400 to the whole request.
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

/// The finding.
pub(crate) fn name_refused(loss: &Loss<'_>) -> Diagnostic {
    let message = format!("{} refuses the name `{}`", loss.target.as_str(), loss.word);
    loss.start(&NAME_REFUSED, message)
}
