//! The tables of `docs/servers.md` are generated from the code.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use deftool_chat::{BodyFallback, Dialect, Dialects, Feature, OptionalMember, Support};

/// Start of the generated part.
const GENERATED: &str = "| sent again | if the server reports |\n";

fn generated() -> String {
    let mut page = format!("{GENERATED}|---|---|\n");
    for fallback in BodyFallback::OTHERS {
        writeln!(page, "| {} | {} |", fallback.describe(), fallback.cause()).unwrap();
    }
    let members: Vec<_> = OptionalMember::all().map(|member| format!("`{}`", member.name())).collect();
    let cause = OptionalMember::all().map(BodyFallback::Without).next().unwrap().cause();
    writeln!(page, "| without {} | {cause} |", members.join(", ")).unwrap();
    page.push_str(
        "\n## Supported features\n\nAn empty cell means unknown: deftool assumes OpenAI's behaviour.\n\n| |",
    );
    let programs: Vec<Dialect> =
        Dialects::built_in().iter().filter(|dialect| dialect.features().next().is_some()).collect();
    for dialect in &programs {
        write!(page, " {} |", dialect.title()).unwrap();
    }
    writeln!(page, "\n|---|{}", "---|".repeat(programs.len())).unwrap();
    for feature in Feature::ALL {
        write!(page, "| {} |", feature.title()).unwrap();
        for dialect in &programs {
            let row = dialect.features().find(|row| row.feature == feature);
            match row {
                Some(row) => write!(page, " {}: {} |", support(row.support), row.detail).unwrap(),
                None => page.push_str(" |"),
            }
        }
        page.push('\n');
    }
    page.push_str(DIALECTS);
    for dialect in Dialects::built_in().iter() {
        let hosts: Vec<String> = dialect.hosts().map(|host| format!("`{host}`")).collect();
        writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            dialect.name(),
            dialect.title(),
            hosts.join(", "),
            dialect.source()
        )
        .unwrap();
    }
    page.push_str(LIMITS);
    page
}

const DIALECTS: &str = "
## Dialects

A dialect is one file of `crates/chat/dialects`: hosts and probes of a vendor or server program, the meaning of its errors and finish reasons, and
what its models write and read, each with its source. A project can add one, as a [preview](preview.md); an error without a known meaning then
ends with the row that would name it. Those of the [project of your own](commands.md#tools-for-all-projects) are also detected, and their rows
under the name of a built-in dialect come before its own.

```eld
(defproject :preview (dialects))
(defdialect :name \"gateway\"
 :like openai
 :errors ((:says [\"prompt was trimmed\"] :means overflow)
          (:code [\"7001\"] :means quota))
 :finish ((:reasons [\"upstream_gone\"] :means failed))
 :delays ((:says \"come back in\")))
(defworker :name \"w\" :endpoint \"https://llm.example.com/v1\" :dialect gateway)
```

| dialect | | hosts | documentation |
|---|---|---|---|
";

const LIMITS: &str = "
## Known limits

- Ollama silently truncates a prompt that does not fit. deftool warns if the context size is known.
- A server behind a proxy, or one that imitates another, may not be detected; set `:dialect`.
";

fn support(support: Support) -> &'static str {
    match support {
        Support::Supported => "yes",
        Support::Ignored => "no",
        Support::Rejected => "refused",
    }
}

#[test]
fn servers_page_matches_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/servers.md");
    let written = fs::read_to_string(&path).unwrap();
    let by_hand = written.split(GENERATED).next().unwrap();
    let page = format!("{by_hand}{}", generated());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &page).unwrap();
        return;
    }
    assert!(page == written, "docs/servers.md differs from the code; run with UPDATE_EXPECT=1 to update it");
}
