//! The Emacs Lisp in Org files.
//!
//! Source: the Org manual (9.7), "Structure of Code Blocks", "Extracting Source Code", "Literal Examples" and "Comment
//! Lines"; verified against `org-babel-tangle`.

use crate::syntax::ORG_REMOVES;

/// Stands for each byte that Org removes when it extracts a block.
pub(super) const REMOVED: u8 = ORG_REMOVES as u8;

/// Blocks with a content that Org does not parse.
const LITERAL: [&str; 4] = ["src", "example", "export", "comment"];

/// An open block.
struct Block<'t> {
    /// The word after `#+begin_`.
    name: &'t str,
    /// Whether its lines are Emacs Lisp.
    is_code: bool,
    lines: Vec<&'t str>,
}

/// Returns `text` with everything blank that is not in an Emacs Lisp block, so that positions stay. Skips blocks with
/// `:tangle no` and blocks below a headline with `COMMENT`, which Emacs does not load. A headline ends a block.
pub(super) fn emacs_lisp(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut block: Option<Block<'_>> = None;
    // The level of the headline that comments its section out.
    let mut commented: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let level = headline_level(line);
        let ends = block.as_ref().is_some_and(|open| level.is_some() || is_end(line, open.name));
        if ends {
            push_block(&mut code, block.take());
        }
        if let Some(open) = &mut block {
            open.lines.push(line);
            continue;
        }
        if let Some(level) = level {
            let is_comment = line.split_whitespace().nth(1) == Some("COMMENT");
            commented = match commented.filter(|outer| *outer < level) {
                None => is_comment.then_some(level),
                outer => outer,
            };
        } else if !ends {
            block = block_of(line, commented.is_some());
        }
        push_blank(&mut code, line);
    }
    push_block(&mut code, block);
    code
}

/// Returns the number of stars of a headline.
fn headline_level(line: &str) -> Option<usize> {
    let rest = line.trim_start_matches('*');
    let level = line.len() - rest.len();
    (level > 0 && rest.starts_with([' ', '\t'])).then_some(level)
}

/// Returns the rest of `line` after `prefix` in any case, without indentation.
fn after<'t>(line: &'t str, prefix: &str) -> Option<&'t str> {
    let (start, rest) = line.trim_start_matches([' ', '\t']).split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn is_end(line: &str, name: &str) -> bool {
    after(line, "#+end_").is_some_and(|rest| rest.trim_end().eq_ignore_ascii_case(name))
}

/// Returns the block that `line` opens, if Org does not parse its content.
fn block_of(line: &str, is_commented: bool) -> Option<Block<'_>> {
    let mut words = after(line, "#+begin_")?.split_whitespace();
    let name = words.next().filter(|name| LITERAL.iter().any(|known| known.eq_ignore_ascii_case(name)))?;
    let is_lisp = |word: &str| ["emacs-lisp", "elisp"].iter().any(|lisp| lisp.eq_ignore_ascii_case(word));
    let is_lisp = name.eq_ignore_ascii_case("src") && words.next().is_some_and(is_lisp);
    let is_skipped = words.any(|word| word == ":tangle") && words.next() == Some("no");
    Some(Block { name, is_code: is_lisp && !is_skipped && !is_commented, lines: Vec::new() })
}

/// Adds the lines of a block. Marks what Org removes: the common indentation, and the comma before `*` and `#+`.
fn push_block(code: &mut String, block: Option<Block<'_>>) {
    let Some(Block { is_code, lines, .. }) = block else { return };
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let with_text = lines.iter().filter(|line| !line.trim().is_empty());
    let common = with_text.map(|line| indentation(line)).min().unwrap_or(0);
    for line in lines {
        if !is_code {
            push_blank(code, line);
            continue;
        }
        let indented = indentation(line);
        let (removed, rest) = line.split_at(common.min(indented));
        let (blank, rest) = rest.split_at(indented - removed.len());
        code.extend(removed.bytes().map(|_| ORG_REMOVES));
        code.push_str(blank);
        match rest.strip_prefix(',') {
            Some(escaped) if is_escaped(escaped) => {
                code.push(ORG_REMOVES);
                code.push_str(escaped);
            }
            Some(_) | None => code.push_str(rest),
        }
    }
}

/// Whether Org escapes a line that starts like this.
fn is_escaped(line: &str) -> bool {
    let line = line.trim_start_matches(',');
    line.starts_with('*') || line.starts_with("#+")
}

fn push_blank(code: &mut String, line: &str) {
    code.extend(line.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { byte as char } else { ' ' }));
}
