//! The arguments of the tool that a call is for.

use deftool_lang::spec::reference::Plist;
use deftool_lang::syntax::NodeId;

use crate::outline::{Form, Outline, Role};
use crate::project::Project;

/// An argument as it is written in its tool, which may be incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenArgument {
    pub(crate) name: String,
    /// The type, as it is written.
    pub(crate) of_type: Option<String>,
    /// The description. May be empty.
    pub(crate) description: String,
    /// The values of `:enum`, as they are written.
    pub(crate) values: Vec<String>,
}

/// Returns the arguments of the tool that is called at `offset` of a form: the tool of the form itself, or another one as it
/// is in the text of its file.
pub(crate) fn arguments_at(
    project: &Project,
    outline: &Outline,
    form: usize,
    offset: usize,
) -> Vec<WrittenArgument> {
    let called = outline.tool_at(form, offset);
    if called == outline.name_of(form) {
        return arguments_of(outline, form);
    }
    let defined = called.and_then(|name| {
        let mut tools = project.tools_called(name);
        tools.find_map(|loaded| {
            let outline = Outline::of(project, &project.path_of(loaded.tool.source)?)?;
            let is_tool = |form: &Form| matches!(form.plist, Plist::Tool | Plist::Exit);
            let mut forms = outline.forms.iter().enumerate();
            let (form, _) =
                forms.find(|(index, form)| is_tool(form) && outline.name_of(*index) == Some(name))?;
            Some(arguments_of(&outline, form))
        })
    });
    defined.unwrap_or_default()
}

/// Returns the arguments of a form.
fn arguments_of(outline: &Outline, form: usize) -> Vec<WrittenArgument> {
    let argument = |list: NodeId| {
        let word = |key| outline.value_of(list, key).map(|value| outline.word(value).to_owned());
        let of_enum = outline.value_of(list, "enum").into_iter();
        let values = of_enum.flat_map(|values| outline.tree.children(values));
        Some(WrittenArgument {
            name: word("name")?,
            of_type: word("type"),
            description: word("description").unwrap_or_default(),
            values: values.map(|value| outline.text_of(value).to_owned()).collect(),
        })
    };
    let lists = outline.form_parts(form).filter(|part| matches!(part.role, Role::Plist(Plist::Argument)));
    lists.filter_map(|part| argument(part.node)).collect()
}
