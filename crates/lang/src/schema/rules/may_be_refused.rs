use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::ToolLimitation;

rule! {
    /// a keyword that a target may reject
    ///
    /// Gemini parses a schema into a message with a fixed set of fields. One unknown field in one tool causes a 400 for
    /// the whole request. The supported fields have changed more than once, so the tool is sent unchanged.
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

pub(crate) fn may_be_refused(limitation: &ToolLimitation<'_>) -> Diagnostic {
    let what = limitation.subject();
    limitation.start(&MAY_BE_REFUSED, format!("{} may reject {what}", limitation.target.as_str()))
}
