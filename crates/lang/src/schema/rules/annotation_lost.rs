use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::ToolLimitation;

rule! {
    /// an annotation that does not reach the model of a target
    ///
    /// An annotation, such as a default value, does not restrict which calls are valid. But the model does not see the
    /// annotation.
    ///
    /// ```eld for-openai-strict fails
    /// (deftool :name "search" :description "Search the notes."
    ///  :args ((:name "limit" :type integer :default 10 :optional t :description "How many.")))
    /// ```
    ///
    /// ```eld for-openai-strict repaired
    /// (deftool :name "search" :description "Search the notes."
    ///  :args ((:name "limit" :type integer :optional t :description "How many; 10 is usual.")))
    /// ```
    pub(crate) ANNOTATION_LOST, "DT504", "annotation-lost", Note
}

pub(crate) fn annotation_lost(limitation: &ToolLimitation<'_>) -> Diagnostic {
    let what = limitation.subject();
    limitation.start(&ANNOTATION_LOST, format!("{what} does not reach the model of {}", limitation.target.as_str()))
}
