use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::Loss;

rule! {
    /// a keyword that a target is certain to refuse
    ///
    /// `openai-strict` answers 400 to a schema outside of its subset, and llama.cpp's server to one that it cannot make a grammar of; either way the whole request is lost, with every tool in it. So the tool is left out of what is compiled for that target, and the others stay. `deftool targets openai-strict` lists what a target takes.
    ///
    /// ```eld for-openai-strict fails
    /// (deftool :name "tag" :description "Tag a note."
    ///  :args ((:name "tags" :type object :properties (:author (:type string)) :additionalProperties t :description "Who it is by.")))
    /// ```
    ///
    /// ```eld for-openai-strict repaired
    /// (deftool :name "tag" :description "Tag a note."
    ///  :args ((:name "tags" :type object :properties (:author (:type string)) :required ["author"] :description "Who it is by.")))
    /// ```
    pub(crate) REFUSED_BY_TARGET, "DT501", "refused-by-target", Error
}

/// The finding.
pub(crate) fn refused_by_target(loss: &Loss<'_>) -> Diagnostic {
    let what = loss.subject();
    loss.start(&REFUSED_BY_TARGET, format!("{} refuses {what}", loss.target.as_str()))
}
