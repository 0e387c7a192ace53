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
    page.push_str("\n### Sources\n\n| server | about | source |\n|---|---|---|\n");
    for dialect in &programs {
        for row in dialect.features() {
            writeln!(page, "| {} | {} | {} |", dialect.title(), row.feature.title(), row.source).unwrap();
        }
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
    page.push_str(TEMPLATES);
    page.push_str(include_str!("../../interop/expected.md"));
    page.push_str(LIMITS);
    page
}

const DIALECTS: &str = "
## Dialects

What deftool knows of a vendor or server program is one file of `crates/chat/dialects`: its hosts and probes, what its errors and finish reasons
mean, where they name a delay, and what its models write and read. Each row has its source and an example of what the server sends. An error
that a row recognises by its text counts from any server, because gateways pass on the errors of others; a number counts only from its own
vendor.

A project can add its own, as a [preview](preview.md): `check` knows the keys, and `:dialect` of a worker selects it. With the preview, an
error without a known meaning ends with the row that would name it. Dialects in the [project of your own](commands.md#tools-for-all-projects) are
also detected by their hosts and probes, and rows under the name of a built-in dialect, such as `openai`, come before its own.

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

const TEMPLATES: &str = "
## What models read

Chat templates differ in what they accept and show. `tests/interop/run` has conversations of three turns with the chat templates of llama.cpp
and vLLM, and with validators, encoders and SDKs of vendors. A server that cannot read a request answers 400 with the error of its template.
The conversation has parallel calls, thoughts, a failed call and a signal. *accepted*: whether deftool gets through, with another body if
necessary. *system*, *budget*, *names*, *arguments*: whether the model reads the system messages, the line with the iterations left, and all
calls. *ids*: the call ids that it reads, if any. *results*: how it reads a string. *thoughts*: whether it reads its earlier thoughts, if the
template shows thoughts.

";

const LIMITS: &str = "
## Known limits

- Ollama silently truncates a prompt that does not fit. deftool warns if the context size is known, which requires a loaded model or its own `num_ctx`.
- `parallel_tool_calls` neither forces nor prevents several calls; several calls in one reply are always read.
- A server behind a proxy that hides headers, owners and pages is not detected; set `:dialect`.
- What a worker learned is lost when it ends.
- Servers that imitate another one (KoboldCpp, LocalAI) may be detected as that one.
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
