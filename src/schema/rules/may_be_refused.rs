use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::Loss;

rule! {
    /// a keyword that a target has been seen to refuse
    ///
    /// Gemini reads a schema into a message of named fields, and one unknown field in one tool is a 400 to the whole request. What it takes has changed more than once, so the tool is sent as it is written.
    ///
    /// ```eld for-gemini fails
    /// (deftool :name "page" :description "Show a page."
    ///  :args ((:name "number" :type integer :exclusiveMinimum 0 :description "Its number.")))
    /// ```
    ///
    /// ```eld for-gemini repaired
    /// (deftool :name "page" :description "Show a page."
    ///  :args ((:name "number" :type integer :minimum 1 :description "Its number.")))
    /// ```
    pub(crate) MAY_BE_REFUSED, "DT502", "may-be-refused", Warning
}

/// The finding.
pub(crate) fn may_be_refused(loss: &Loss<'_>) -> Diagnostic {
    let what = loss.subject();
    loss.start(&MAY_BE_REFUSED, format!("{} may refuse {what}", loss.target.as_str()))
}
