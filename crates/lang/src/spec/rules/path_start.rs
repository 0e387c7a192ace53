use crate::diagnostic::{Diagnostic, rule};
use crate::spec::HomeFolder;
use crate::text::{Location, Spanned};

rule! {
    /// a path that begins with an unknown variable
    ///
    /// A path in `:read`, `:write`, `:cwd` or `:bios` may begin with `~`, `$XDG_CONFIG_HOME`, `$XDG_DATA_HOME`,
    /// `$XDG_STATE_HOME` or `$XDG_CACHE_HOME`. Other variables and `~user` are not expanded. A name in the project that
    /// begins with one of these characters is written with a dot: `./~`.
    ///
    /// ```eld fails
    /// (deftool :name "note" :description "Read a note." :allow (:read ["$HOME/notes/"]))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "note" :description "Read a note." :allow (:read ["~/notes/"]))
    /// ```
    pub(crate) PATH_START, "DT138", "path-start", Error
}

/// Checks the beginning of a path.
pub(in crate::spec) fn check(at: Location, path: &Spanned<String>) -> Option<Diagnostic> {
    let unknown = HomeFolder::split(&path.value).err()?;
    let finding = Diagnostic::new(&PATH_START, at, unknown.to_string());
    Some(match unknown.meant() {
        Some(meant) => finding.did_you_mean(path.span, super::quoted(&meant)),
        None => {
            let in_project = super::quoted(&format!("./{}", path.value));
            finding.maybe_fixed_by(unknown.help(), path.span, in_project)
        }
    })
}
