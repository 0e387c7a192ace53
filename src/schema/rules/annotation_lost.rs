use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::Loss;

rule! {
    /// an annotation that does not reach the model of a target
    ///
    /// It allows and forbids nothing, so no call is lost by it; but what it says, such as a default, the model does not read.
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

/// The finding.
pub(crate) fn annotation_lost(loss: &Loss<'_>) -> Diagnostic {
    let what = loss.subject();
    loss.start(&ANNOTATION_LOST, format!("{what} does not reach the model of {}", loss.target.as_str()))
}
