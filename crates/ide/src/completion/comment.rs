//! Completion of `deftool:` directives in comments.

use deftool_lang::diagnostic::Rule;
use deftool_lang::text::Span;
use deftool_project::rules;

use super::item::{Completion, CompletionKind, Completions, choose, plain};

/// Completes a comment at a byte of it: what follows `deftool:`, and the rules in `allow(…)` by name or code. `offset`: that
/// byte in the file.
pub(super) fn directives(comment: &str, at: usize, offset: usize) -> Completions {
    let before = comment.get(..at).unwrap_or_default();
    let Some((_, directive)) = before.split_once("deftool:") else { return Completions::default() };
    let word = directive.rsplit(|c: char| !c.is_alphanumeric() && c != '-').next().unwrap_or_default();
    let replaces = Span::new(offset - word.len(), offset);
    if let Some((_, inside)) = directive.split_once("allow(") {
        return if inside.contains(')') { Completions::default() } else { of_rules(word, replaces) };
    }
    if !directive.trim_start().chars().all(|c| c.is_ascii_alphabetic()) {
        return Completions::default();
    }
    let known = [
        ("allow(…)", "allow($1)", "Silences findings of these rules in the next form, or on this line."),
        ("skip", "skip", "Skips the next form."),
    ];
    let items =
        known.map(|(label, snippet, doc)| plain(label, CompletionKind::Value, snippet, doc, replaces));
    Completions { items: items.to_vec(), is_incomplete: false }
}

/// Returns the rules by their names, then by their codes.
pub(super) fn of_rules(typed: &str, replaces: Span) -> Completions {
    let rules = rules::all();
    let names = rules.iter().map(|rule| (rule.name, *rule));
    let codes = rules.iter().map(|rule| (rule.code, *rule));
    let (chosen, are_all) = choose(names.chain(codes), |(word, _)| word, typed);
    let complete = |(word, rule): (&str, &Rule)| -> Completion {
        plain(word, CompletionKind::Rule, word, &rule.explanation(), replaces)
    };
    Completions { items: chosen.into_iter().map(complete).collect(), is_incomplete: !are_all }
}
