use crate::diagnostic::{Diagnostic, rule};
use crate::spec::Tool;
use crate::text::Location;

rule! {
    /// a description that only repeats the name
    ///
    /// The model receives the name anyway. The description should state when to call the tool and what the tool
    /// returns.
    ///
    /// ```eld fails
    /// (deftool :name "get_weather" :description "Get weather.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "get_weather" :description "Tell the current weather of a city.")
    /// ```
    pub(crate) DESCRIPTION_IS_NAME, "DT118", "description-is-name", Note
}

pub(in crate::spec) fn check(tool: &Tool) -> Option<Diagnostic> {
    let plain = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let (name, description) = (&tool.name.value, &tool.description);
    // Only short descriptions: longer ones contain more than the name.
    if name.is_empty() || description.value.len() > name.len() * 4 || plain(name) != plain(&description.value) {
        return None;
    }
    let at = Location { source: tool.source, span: description.span };
    Some(
        Diagnostic::new(&DESCRIPTION_IS_NAME, at, format!("the description of `{name}` only repeats its name"))
            .note("describe when to call it and what it returns"),
    )
}
