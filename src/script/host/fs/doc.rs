//! What scripts' authors are told of `fs`.

use super::super::{FunctionDoc, TableDoc};

pub(in crate::script::host) const DOC: TableDoc = TableDoc {
    permissions: &["read", "write"],
    types: "type FileEntry = { name: string, kind: \"file\" | \"directory\" | \"symlink\" | \"other\", size: number }\n\
            type FileStat = { kind: \"file\" | \"directory\" | \"symlink\" | \"other\", size: number, modified: number?, readonly: boolean }\n\
            type GlobOptions = { root: string?, kind: (\"file\" | \"directory\" | \"any\")?, hidden: boolean?, gitignore: boolean?, limit: number?, depth: number? }",
    functions: &[
        FunctionDoc::new("read", "(path: string) -> string", "The text of a UTF-8 file. Needs `:read`.")
            .needs(&["read"])
            .fails("What is no regular file (a pipe, a device, a folder), is not UTF-8 or is longer than 8 MiB.")
            .as_in("local note = fs.read(\"notes/today.md\")"),
        FunctionDoc::new(
            "lines",
            "(path: string, options: { from: number?, count: number? }?) -> ({ string }, boolean)",
            "A page of a UTF-8 file: `count` lines (1,000 by default, 100,000 at most) from line `from` on (1 is the \
             first), without their line ends, and whether more follow. A page ends early where it would be longer than 8 MiB. \
             Needs `:read`.",
        )
        .needs(&["read"])
        .fails("What is no regular file; a line of the page that is not UTF-8 or is longer than 8 MiB.")
        .as_in(
            "local lines, more = fs.lines(\"logs/build.log\", { from = 201, count = 200 })\n\
             return { text = table.concat(lines, \"\\n\"), next = if more then 201 + #lines else nil }",
        ),
        FunctionDoc::new(
            "read_bytes",
            "(path: string, options: { offset: number?, limit: number? }?) -> string",
            "The bytes of a file, whatever they are: `limit` bytes from byte `offset` (0 is the first), fewer at its end. \
             Needs `:read`.",
        )
        .needs(&["read"])
        .fails("What is no regular file; more than 8 MiB at a time."),
        FunctionDoc::new(
            "list",
            "(path: string) -> { FileEntry }",
            "The entries of a folder, by name; sizes in bytes. Links are not followed. Hidden entries that no grant names are left out. Needs `:read` or `:write`.",
        )
        .needs(&["read", "write"])
        .fails("A folder with more than 10,000 entries."),
        FunctionDoc::new(
            "stat",
            "(path: string) -> FileStat?",
            "What is known about a file or folder, nil where there is none: its size in bytes, when it was changed in seconds \
             since 1970. Links are followed. Needs `:read` or `:write`.",
        )
        .needs(&["read", "write"]),
        FunctionDoc::new(
            "exists",
            "(path: string) -> boolean",
            "Whether there is a file or folder. Needs `:read` or `:write`.",
        )
        .needs(&["read", "write"]),
        FunctionDoc::new(
            "glob",
            "(pattern: string, options: GlobOptions?) -> ({ string }, boolean)",
            "The paths that a pattern matches, sorted, and whether there may be more. `*` and `?` stay within a name, `**` spans \
             folders, `[a-z]` and `{a,b}` are as in a shell. The walk begins in the folder that the pattern names before its \
             first wildcard, or in `root`; it follows no links. `kind` is `file` by default. Names that begin with a dot are \
             left out unless `hidden = true` or the pattern spells the dot, and a grant names them. With `gitignore = true` what `.gitignore` and \
             `.ignore` files name is left out, and so is `.git`. `limit` is 1,000 by default, 100,000 at most; `depth` counts \
             folders, 1 being the first alone. A folder that cannot be read has nothing in it. Needs `:read` or `:write`.",
        )
        .needs(&["read", "write"])
        .fails("A pattern that makes no sense. A walk looks at 300,000 entries and 100 levels at most, and then answers that there may be more.")
        .as_in("local sources, more = fs.glob(\"**/*.rs\", { root = \"src\", gitignore = true, limit = 200 })"),
        FunctionDoc::new(
            "write",
            "(path: string, text: string, options: { parents: boolean? }?) -> ()",
            "Puts a text (or any bytes) in the place of a file, or makes it: whole or not at all, whatever happens meanwhile. An \
             old file's permissions stay. Missing folders are made with `parents = true` only. Needs `:write`.",
        )
        .needs(&["write"])
        .fails("A file that is read-only or no regular file; more than 64 MiB or 10,000 new files in one call.")
        .as_in("fs.write(\"out/report.md\", \"# Report\\n\", { parents = true })"),
        FunctionDoc::new(
            "append",
            "(path: string, text: string, options: { parents: boolean? }?) -> ()",
            "Adds a text to the end of a file, or makes it. Needs `:write`.",
        )
        .needs(&["write"])
        .fails("As `write`; a file with several names (hard links), of which one may lie outside of what is granted."),
        FunctionDoc::new(
            "mkdir",
            "(path: string, options: { parents: boolean? }?) -> ()",
            "Makes a folder; with `parents = true` also those above it, and it may be there already. Needs `:write`.",
        )
        .needs(&["write"])
        .fails("A path that exists (with `parents`: as something else than a folder)."),
        FunctionDoc::new(
            "remove",
            "(path: string, options: { recursive: boolean? }?) -> ()",
            "Removes a file, a link (not what it leads to) or an empty folder; with `recursive = true` also what is in the \
             folder. Needs `:write`.",
        )
        .needs(&["write"])
        .fails("A path that does not exist; the granted folder itself; more than 10,000 files and folders, or a hidden one that no grant names: then nothing is removed."),
        FunctionDoc::new(
            "rename",
            "(from: string, to: string) -> ()",
            "Gives a file or folder another name, perhaps in another folder. A file that has that name already is replaced. Needs \
             `:write` for both.",
        )
        .needs(&["write"])
        .fails("A folder or link as `to`; a folder or link that would take a granted folder's place; folders on two disks."),
    ],
    ..TableDoc::new(
        "fs",
        "Files and folders beneath those that the spec grants: `:allow (:read [\"notes/\"] :write [\"out/\"])`. `:read` allows to read and \
         look, `:write` to write, make, rename, remove and look, but not to read. A path is named as its grant is \
         (`notes/today.md`), relative to the project, or in full.\n\n\
         Links are followed as long as they stay beneath the granted folder. Hidden files and folders (`.env`, `.git`) below a granted folder \
         are not covered, by whatever link or path they are reached: a grant has to name them. What belongs to the running system rather than to a \
         disk (`/proc`, `/sys`) is refused under a grant around it, as `/` is.",
    )
};
