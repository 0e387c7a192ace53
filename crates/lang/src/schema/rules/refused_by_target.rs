use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::ToolLimitation;

rule! {
    /// a keyword that a target rejects
    ///
    /// `openai-strict` answers 400 to a schema outside its subset, and the llama.cpp server answers 400 to a schema
    /// that it cannot convert to a grammar. In both cases the whole request fails, with all its tools. The tool is
    /// therefore omitted for this target, and the others are compiled. `deftool compile --list-targets openai-strict` lists
    /// what the target supports.
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

pub(crate) fn refused_by_target(limitation: &ToolLimitation<'_>) -> Diagnostic {
    let what = limitation.subject();
    limitation.start(&REFUSED_BY_TARGET, format!("{} rejects {what}", limitation.target.as_str()))
}
