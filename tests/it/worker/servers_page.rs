//! `docs/servers.md`: what stands above its tables is written by hand, the tables are made of the code.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use deftool::chat::{DIALECTS, FACTS, Fate, Feature, Swap, dialect_name};

/// Where the made part begins.
const MADE: &str = "| sent again | where a server says |\n";

fn made() -> String {
    let mut page = format!("{MADE}|---|---|\n");
    for swap in Swap::ALL {
        writeln!(page, "| {} | {} |", swap.describe(), swap.cause()).unwrap();
    }
    page.push_str("\n## What each server takes\n\nWhere nothing stands, nothing is known: it is taken to do as OpenAI does.\n\n| |");
    for dialect in DIALECTS {
        write!(page, " {} |", dialect_name(dialect)).unwrap();
    }
    page.push_str("\n|---|---|---|---|---|---|---|\n");
    for feature in Feature::ALL {
        write!(page, "| {} |", feature.title()).unwrap();
        for dialect in DIALECTS {
            let fact = FACTS.iter().find(|fact| fact.dialect == dialect && fact.feature == feature);
            match fact {
                Some(fact) => write!(page, " {}: {} |", fate(fact.fate), fact.says).unwrap(),
                None => page.push_str(" |"),
            }
        }
        page.push('\n');
    }
    page.push_str("\n### Sources\n\n| server | about | source |\n|---|---|---|\n");
    for fact in FACTS {
        writeln!(page, "| {} | {} | {} |", dialect_name(fact.dialect), fact.feature.title(), fact.source)
            .unwrap();
    }
    page.push_str(LIMITS);
    page
}

const LIMITS: &str = "
## Known limits

- Ollama cuts a prompt that does not fit and says nothing. It is told by a warning where the context is known, which takes a loaded model or a `num_ctx` of its own.
- `parallel_tool_calls` cannot make a model call several tools, nor keep one from it; several calls in one reply are always read.
- A server behind a proxy that hides headers, owners and pages is not told; name it with `:dialect`.
- What a worker learned is forgotten when it ends.
- Servers that answer as another one does (KoboldCpp, LocalAI) may be taken for that one.
";

fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Takes => "yes",
        Fate::Ignores => "no",
        Fate::Refuses => "refused",
    }
}

#[test]
fn the_page_of_servers_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/servers.md");
    let written = fs::read_to_string(&path).unwrap();
    let by_hand = written.split(MADE).next().unwrap();
    let page = format!("{by_hand}{}", made());
    if std::env::var_os("DEFTOOL_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
        return;
    }
    assert!(page == written, "docs/servers.md is not what the code says; write it anew with DEFTOOL_BLESS=1");
}
