//! The file that a worker's `:bios` names.
//!
//! It is read when a worker starts, and by a check to say what would be wrong then. What is in it goes to a server, so it must
//! lie in the project and not be hidden: no spec sends `.env` away. What its braces mean is said in
//! [`crate::spec::bios_pieces`].

use std::collections::HashSet;
use std::path::{Component, Path};

use super::load::Load;
use super::outside::sendable;
use super::read::read_regular;
use super::rules;
use crate::script::hidden_names;
use crate::spec::{BiosPiece, BiosSource, Placeholder, WorkerSpec, bios_pieces, nearest};
use crate::text::Location;

/// A BIOS larger than this is none, in bytes: it is sent with every turn.
const MAX_BYTES: u64 = 256 << 10;

/// The text of the BIOS of `worker`, which is in the project at `root`, empty if it is off; `None`: the built-in one.
///
/// # Errors
/// Why it cannot be had, in a clause that names the file.
pub fn read_bios(root: &Path, worker: &WorkerSpec) -> Result<Option<String>, String> {
    let named = match &worker.bios {
        BiosSource::BuiltIn => return Ok(None),
        BiosSource::Off => return Ok(Some(String::new())),
        BiosSource::File(named) => named,
    };
    let name = &named.value;
    let told = |why: &str| format!("the BIOS `{name}` of worker `{}`: {why}", worker.name.value);
    let is_inside =
        Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !is_inside || name.is_empty() {
        return Err(told("it is no path inside of the project"));
    }
    if hidden_names(Path::new(name)).next().is_some() {
        return Err(told("it is hidden, and hidden files are not sent; copy the text to a file that is not"));
    }
    let read = sendable(root, &root.join(name)).and_then(|found| read_regular(&found, MAX_BYTES + 1));
    let bytes = read.map_err(|error| told(&crate::text::one_line(error.to_string())))?.bytes;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(told("it is larger than 256 KiB, and is sent with every turn"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| told("it is not UTF-8"))
}

/// Workers whose BIOS cannot be had, or has words in braces that are no placeholders.
pub(super) fn tell_bios(load: &mut Load) {
    for worker in &mut load.workers {
        let (Some(source), BiosSource::File(named)) = (worker.source, &worker.bios) else { continue };
        let Some(root) = load.roots.get(&source) else { continue };
        let at = Location { source, span: named.span };
        match read_bios(root, worker) {
            Ok(Some(text)) => load.findings.extend(
                unknown(&text)
                    .into_iter()
                    .map(|unknown| rules::bios_placeholder::finding(at, &named.value, &unknown)),
            ),
            Ok(None) => {}
            Err(why) => {
                load.findings.push(rules::bios_file::finding(at, &why));
                worker.valid = false;
            }
        }
    }
}

/// So many are told of one file: it is full of code.
const MAX_UNKNOWN: usize = 20;

/// A word in braces that is sent as it is, and may not be meant to be.
pub(super) struct Unknown<'t> {
    /// From 1.
    pub(super) line: usize,
    pub(super) word: &'t str,
    /// The placeholder that it nearly is.
    pub(super) meant: Option<&'static str>,
}

/// The words in braces that are no placeholder, each once. After a `$`, a backslash or a word, braces are those of some code,
/// unless what they hold is nearly a placeholder.
fn unknown(text: &str) -> Vec<Unknown<'_>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for (index, line) in text.lines().enumerate() {
        let mut before = "";
        for piece in bios_pieces(line) {
            match piece {
                BiosPiece::Text(plain) => before = plain,
                BiosPiece::Placeholder(_) => before = "",
                BiosPiece::Unknown(word) => {
                    let is_code =
                        before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '$' | '\\' | '_'));
                    let meant = nearest(word, Placeholder::ALL.map(Placeholder::as_str));
                    if (meant.is_some() || !is_code) && seen.insert(word) {
                        found.push(Unknown { line: index + 1, word, meant });
                    }
                    before = "}";
                }
            }
            if found.len() >= MAX_UNKNOWN {
                return found;
            }
        }
    }
    found
}
