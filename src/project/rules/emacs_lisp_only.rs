use crate::diagnostic::rule;

rule! {
    /// a tool whose implementation is Emacs Lisp and that has no script
    pub(crate) EMACS_LISP_ONLY, "DT405", "emacs-lisp-only", Note
}
