//! Documentation of `fs`.

use super::super::docs::{FunctionDoc, TableDoc};

pub(in crate::host) const DOC: TableDoc = TableDoc {
    permissions: &["read", "write"],
    types: "type FileEntry = { name: string, kind: \"file\" | \"directory\" | \"symlink\" | \"other\", size: number }\n\
            type FileStat = { kind: \"file\" | \"directory\" | \"symlink\" | \"other\", size: number, modified: number?, readonly: boolean }\n\
            type GlobOptions = { root: string?, kind: (\"file\" | \"directory\" | \"any\")?, hidden: boolean?, gitignore: boolean?, limit: number?, depth: number? }",
    functions: &[
        FunctionDoc::new("read", "(path: string) -> string", "Returns the contents of a UTF-8 file. Requires `:read`.")
            .with_permissions(&["read"])
            .with_errors("The path is not a regular file (for example a pipe, device or folder), or the file is not UTF-8 or is longer than 8 MiB.")
            .with_example("local note = fs.read(\"notes/today.md\")"),
        FunctionDoc::new(
            "lines",
            "(path: string, options: { from: number?, count: number? }?) -> ({ string }, boolean)",
            "Returns `count` lines (by default 1,000, at most 100,000) of a UTF-8 file, starting at line `from` (the first line is 1), \
             without line ends, and whether more lines follow. Returns fewer lines if they would be longer than 8 MiB together. \
             Requires `:read`.",
        )
        .with_permissions(&["read"])
        .with_errors("The path is not a regular file; a returned line is not UTF-8 or is longer than 8 MiB.")
        .with_example(
            "local lines, more = fs.lines(\"logs/build.log\", { from = 201, count = 200 })\n\
             return { text = table.concat(lines, \"\\n\"), next = if more then 201 + #lines else nil }",
        ),
        FunctionDoc::new(
            "read_bytes",
            "(path: string, options: { offset: number?, limit: number? }?) -> string",
            "Returns `limit` bytes of a file, starting at byte `offset` (the first byte is 0). Returns fewer at the end of the file. \
             Requires `:read`.",
        )
        .with_permissions(&["read"])
        .with_errors("The path is not a regular file; more than 8 MiB are requested."),
        FunctionDoc::new(
            "list",
            "(path: string) -> { FileEntry }",
            "Returns the entries of a folder, sorted by name, with sizes in bytes. Does not follow links. Omits hidden entries that no grant names. Requires `:read` or `:write`.",
        )
        .with_permissions(&["read", "write"])
        .with_errors("The folder has more than 10,000 entries."),
        FunctionDoc::new(
            "stat",
            "(path: string) -> FileStat?",
            "Returns information about a file or folder, or nil if it does not exist: `size` in bytes, `modified` in seconds since \
             1970. Follows links. Requires `:read` or `:write`.",
        )
        .with_permissions(&["read", "write"]),
        FunctionDoc::new(
            "exists",
            "(path: string) -> boolean",
            "Returns whether a file or folder exists. Requires `:read` or `:write`.",
        )
        .with_permissions(&["read", "write"]),
        FunctionDoc::new(
            "glob",
            "(pattern: string, options: GlobOptions?) -> ({ string }, boolean)",
            "Returns the sorted paths that match a pattern, and whether there may be more. `*` and `?` match within a name, `**` matches \
             any number of folders, `[a-z]` and `{a,b}` work as in a shell. The search starts in the folder that precedes the first \
             wildcard of the pattern, or in `root`. It does not follow links. `kind` is `file` by default. Names that start with a dot \
             are returned only if a grant names them and `hidden = true` is set or the pattern contains the dot. `gitignore = true` \
             excludes `.git` and files that `.gitignore` and `.ignore` exclude. `limit` is 1,000 by default, at most 100,000. `depth` \
             limits the folder levels; 1 is only the start folder. Unreadable folders count as empty. Requires `:read` or `:write`.",
        )
        .with_permissions(&["read", "write"])
        .with_errors("The pattern is invalid. A search visits at most 300,000 entries and 100 levels; beyond that it reports that there may be more.")
        .with_example("local sources, more = fs.glob(\"**/*.rs\", { root = \"src\", gitignore = true, limit = 200 })"),
        FunctionDoc::new(
            "write",
            "(path: string, text: string, options: { parents: boolean? }?) -> ()",
            "Creates or replaces a file with a text or any bytes. The write is atomic. An existing file keeps its permissions. \
             `parents = true` creates missing folders. Requires `:write`.",
        )
        .with_permissions(&["write"])
        .with_errors("The file is read-only or not a regular file; a call writes more than 64 MiB or creates more than 10,000 files.")
        .with_example("fs.write(\"out/report.md\", \"# Report\\n\", { parents = true })"),
        FunctionDoc::new(
            "append",
            "(path: string, text: string, options: { parents: boolean? }?) -> ()",
            "Appends a text to a file. Creates the file if it does not exist. Requires `:write`.",
        )
        .with_permissions(&["write"])
        .with_errors("As for `write`; the file has several hard links, one of which may be outside of the granted folder."),
        FunctionDoc::new(
            "mkdir",
            "(path: string, options: { parents: boolean? }?) -> ()",
            "Creates a folder. With `parents = true` also creates missing parent folders, and the folder may already exist. Requires `:write`.",
        )
        .with_permissions(&["write"])
        .with_errors("The path already exists (with `parents = true`: and is not a folder)."),
        FunctionDoc::new(
            "remove",
            "(path: string, options: { recursive: boolean? }?) -> ()",
            "Removes a file, a link (not its target) or an empty folder. `recursive = true` also removes the contents of a folder. \
             Requires `:write`.",
        )
        .with_permissions(&["write"])
        .with_errors("The path does not exist or is the granted folder itself. If the folder contains more than 10,000 entries, or a hidden entry that no grant names, nothing is removed."),
        FunctionDoc::new(
            "rename",
            "(from: string, to: string) -> ()",
            "Renames or moves a file or folder. An existing file at `to` is replaced. Requires `:write` for both.",
        )
        .with_permissions(&["write"])
        .with_errors("`to` is an existing folder or link; a folder or link would replace or move a granted path; the paths are on different disks."),
    ],
    ..TableDoc::new(
        "fs",
        "Access to the files and folders that the spec grants: `:allow (:read [\"notes/\"] :write [\"out/\"])`. `:read` allows reading, \
         listing and `stat`. `:write` allows writing, creating, renaming, removing, listing and `stat`, but not reading. A path starts \
         with the name of its grant (`notes/today.md`) and is relative to the project, or is absolute, or begins with `~` or another \
         folder of the user, such as `$XDG_CONFIG_HOME`.\n\n\
         Links are followed if they stay in the granted folder. A grant of a folder does not include hidden files and folders in it \
         (`.env`, `.git`), however they are reached; a grant must name them. System file systems (`/proc`, `/sys`) are not included \
         in a grant of a parent folder such as `/`.",
    )
};
