//! Generates a deterministic corpus of realistic specs.
//!
//! Each tool has about 0.9 KB and one to five arguments. One tool in three has an enum, one in eight a nested
//! object, and one in four code under `:function`. The files also contain comments. The corpus has no findings.

use std::fmt::Write;
use std::fs;
use std::path::Path;

const VERBS: [&str; 12] = [
    "list",
    "read",
    "search",
    "create",
    "update",
    "remove",
    "plan",
    "convert",
    "summarize",
    "rename",
    "compare",
    "export",
];

const NOUNS: [(&str, &str); 16] = [
    ("notes", "the notes of the user's notebook, newest first, with their titles and dates"),
    ("buffer", "the text of a buffer between two lines, numbered, without text properties"),
    ("calendar", "the entries of a calendar in a span of days, recurring ones expanded"),
    ("contacts", "people in the address book whose name or organisation contains a text"),
    ("files", "files beneath a folder whose name matches a glob, hidden ones left out"),
    ("issues", "issues of a tracker, filtered by label, state and the person they are assigned to"),
    ("routes", "train connections between two stations, with changes and platforms"),
    ("recipes", "recipes that can be cooked from what is in the pantry"),
    ("weather", "the weather at a place, now or at an hour of the coming week"),
    ("packages", "packages of the distribution by name, with version and installed size"),
    ("commits", "commits of a repository that touch a path, with author and subject"),
    ("messages", "messages of a mailbox that match a query in the mailbox's own syntax"),
    ("bookmarks", "bookmarks with a tag, with address, title and the day they were made"),
    ("photos", "photos taken at a place or on a day, with their size and camera"),
    ("invoices", "invoices of a customer that are open, with amount and due date"),
    ("symbols", "definitions of a symbol in the project, as file, line and first line of text"),
];

/// Independent argument plists.
const ARGUMENTS: [&str; 14] = [
    r#"(:name "query" :type string :minLength 1
         :description "What to look for. Words are joined by AND; quote a phrase with \"double quotes\".")"#,
    r#"(:name "path" :type string
         :description "Path of the file or folder, relative to the project's root. Must not lead out of it.")"#,
    r#"(:name "limit" :type integer :minimum 1 :maximum 100 :default 20 :optional t
         :description "The most results to return. Defaults to 20.")"#,
    r#"(:name "order" :type string :enum ["newest" "oldest" "relevance"] :optional t
         :description "The order of the results; by relevance if not given.")"#,
    r#"(:name "unit" :type string :enum ["celsius" "fahrenheit"] :optional t
         :description "The unit of temperature, either 'celsius' or 'fahrenheit'.")"#,
    r#"(:name "from_line" :type integer :minimum 1
         :description "Number of the first line to return, counted from 1.")"#,
    r#"(:name "tags" :type array :items (:type string) :maxItems 16 :optional t
         :description "Only what carries all of these tags.")"#,
    r#"(:name "recursive" :type boolean :optional t
         :description "Whether folders inside are looked into as well.")"#,
    r#"(:name "since" :type string :format "date" :optional t
         :description "Only what was changed on or after this day, as YYYY-MM-DD.")"#,
    r#"(:name "replacement" :type string
         :description "The new text. Given as it shall stand in the file, with its own indentation and line ends.")"#,
    r#"(:name "place" :type object :description "Where. Latitude and longitude in degrees, or nothing but a name."
         :properties (:name (:type string :description "Name as people say it, e.g. \"Gare du Nord\".")
                      :latitude (:type number :minimum -90 :maximum 90)
                      :longitude (:type number :minimum -180 :maximum 180))
         :required ["name"])"#,
    r#"(:name "steps" :type array :description "What to do, in order; at most eight."
         :items (:type object
                 :properties (:action (:type string :enum ["move" "copy" "delete"])
                              :target (:type string :description "Path that the action is about.")
                              :minutes (:type number :description "How long it may take."))
                 :required ["action" "target"]))"#,
    r#"(:name "ratio" :type number :minimum 0.0 :maximum 1.0
         :description "Share that is kept, between 0.0 and 1.0.")"#,
    r#"(:name "pattern" :type string :pattern "^[a-z0-9_*?/.-]+$"
         :description "A glob such as src/**/*.rs.")"#,
];

/// A tool with its spec, name and script.
pub(crate) struct CorpusTool {
    /// The form, after a comment.
    pub(crate) spec: String,
    /// The unique name.
    pub(crate) name: String,
    /// A Luau script for the spec.
    pub(crate) script: String,
}

/// Returns tool `number` of the corpus.
pub(crate) fn tool(number: usize) -> CorpusTool {
    let mut random = fastrand::Rng::with_seed(number as u64);
    let verb = VERBS[random.usize(..VERBS.len())];
    let (noun, what) = NOUNS[random.usize(..NOUNS.len())];
    let name = format!("{verb}_{noun}_{number}");
    let mut picked: Vec<&str> = ARGUMENTS.to_vec();
    random.shuffle(&mut picked);
    picked.truncate(1 + random.usize(..5));
    // Optional arguments come last, as usual.
    picked.sort_by_key(|argument| argument.contains(":optional t"));
    let names: Vec<&str> =
        picked.iter().map(|argument| argument.split('"').nth(1).unwrap_or_default()).collect();
    let mut spec =
        format!(";; {verb} {noun}: see the manual, section {number}.\n(deftool\n :name \"{name}\"\n");
    let _ = writeln!(
        spec,
        " :description \"Use this to {verb} {what}. Returns at most a page of results, and says so\nwhere there are more.\""
    );
    if number.is_multiple_of(4) {
        let _ = writeln!(
            spec,
            " :function (lambda ({})\n             ;; ?\\( is an open parenthesis\n             (my/{verb}-{noun} (format \"%s (%d)\\n\" {} ?\\()))",
            names.join(" "),
            names[0]
        );
    }
    let _ = writeln!(spec, " :category \"{noun}\"\n :args (");
    spec.pop();
    for (index, argument) in picked.iter().enumerate() {
        let separator = if index == 0 { "" } else { "\n        " };
        let _ = write!(spec, "{separator}{argument}");
    }
    spec.push_str("))\n\n");
    let script = format!(
        "-- {verb} {noun}\nreturn function({})\n  local found = {{}}\n  for index = 1, 10 do\n    table.insert(found, {{ index = index, value = {} }})\n  end\n  return {{ tool = \"{name}\", found = found }}\nend\n",
        names.join(", "),
        names[0]
    );
    CorpusTool { spec, name, script }
}

/// Writes `tools` tools, eight per file, to `specs/` in `folder`, and optionally their scripts to `scripts/`. Returns
/// the size of the specs in bytes.
pub(crate) fn write(folder: &Path, tools: usize, with_scripts: bool) -> std::io::Result<usize> {
    let specs = folder.join("specs");
    let scripts = folder.join("scripts");
    fs::create_dir_all(&specs)?;
    fs::create_dir_all(&scripts)?;
    let mut bytes = 0;
    for first in (0..tools).step_by(8) {
        let mut text = String::from(";; Specs of the corpus.\n\n");
        for number in first..(first + 8).min(tools) {
            let CorpusTool { spec, name, script } = tool(number);
            text.push_str(&spec);
            if with_scripts {
                fs::write(scripts.join(format!("{name}.lua")), script)?;
            }
        }
        bytes += text.len();
        fs::write(specs.join(format!("{first:06}.eld")), text)?;
    }
    Ok(bytes)
}
