//! Recordings of hostile models, and files that are not recordings.

use super::*;

/// Text that would leave the data element, run a script, or disguise other text.
pub(super) const HOSTILE: &str = "</script><script>document.title='owned'</script><!--<script>\u{2028}\u{2029}\
    <img src=x onerror=\"document.title='owned'\">{{data}} ]]> &lt;b&gt; \u{202e}txet\u{202c}\u{2066} \u{1b}[31mred\u{7} \u{0}\r\u{feff}\u{e0041}";

/// A run with hostile text in all parts that the model and the tools control.
pub(super) fn hostile_project() -> Project {
    let project = project();
    project.write(
        "scripts/count.lua",
        "return function(text, times) return { echo = text, [text] = text } end\n",
    );
    let reasoning = json!({"choices": [{"index": 0, "delta": {"reasoning_content": HOSTILE}}]});
    let arguments = json!({ "text": HOSTILE }).to_string();
    let ended = record(
        &project,
        "a.jsonl",
        [
            Answer::error(503, &[("retry-after-ms", "1")], HOSTILE),
            Answer::chunks(&[reasoning, delta(HOSTILE), call(0, "count", &arguments), finish("tool_calls")]),
            Answer::chunks(&[
                delta("Bye."),
                call(0, "done", &json!({ "summary": HOSTILE }).to_string()),
                finish("stop"),
            ]),
        ],
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    project
}

#[test]
fn hostile_content_stays_data() {
    let project = hostile_project();
    let name = "<img src=x onerror=alert(1)>\".jsonl";
    fs::copy(project.path("a.jsonl"), project.path(name)).unwrap();
    let ended = project.run(&["view", name, "a.jsonl", "-o", "-"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let page = ended.stdout;
    assert_eq!(page.matches("<script").count(), 2, "only the page's own scripts");
    assert_eq!((page.matches("</script").count(), page.matches("<img").count()), (2, 0));
    assert!(page.chars().all(|c| c == '\n' || !c.is_control()), "control characters are escaped");
    assert!(!page.contains(['\u{202e}', '\u{2066}', '\u{2028}']));
    assert!(page.contains(
        "<title>&lt;img src=x onerror=alert(1)&gt;&quot;.jsonl and a.jsonl – deftool view</title>"
    ));
    let policy =
        page.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; img-src data:; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"));
    for reference in ["http://", "https://", "src=", "@import", "url("] {
        let own = page.split("<style>").nth(1).unwrap().split("id=\"data\"").next().unwrap();
        assert!(!own.contains(reference), "{reference}");
    }
    // Nothing is lost.
    let data = data(&page);
    assert_eq!(entry(&data, "reasoning")["text"], HOSTILE);
    assert_eq!(entry(&data, "text")["text"], HOSTILE);
}

#[test]
fn incomplete_and_invalid_files_are_reported() {
    let project = project();
    record(&project, "a.jsonl", counted("a", "b"));
    let whole = fs::read(project.path("a.jsonl")).unwrap();
    // Cut in the middle of a line of the first reply.
    let text = whole.windows(5).position(|window| window == b"ting.").unwrap();
    project.write("cut.jsonl", &whole[..text]);
    let data = view(&project, &["cut.jsonl"]);
    assert_eq!(
        kinds(&data),
        ["turn", "fault http_503", "retry", "turn", "reasoning", "text", "fault recording_cut"]
    );
    assert_eq!(entry(&data, "text")["text"], "Coun");
    assert_eq!(data["files"][0]["requests"][0]["outcome"], json!({}));
    // Any cut has a page, or a message.
    for end in (0..whole.len()).step_by(997) {
        project.write("cut.jsonl", &whole[..end]);
        let ended = project.run(&["view", "cut.jsonl", "-o", "-"]);
        assert!(matches!(ended.code, Some(0 | 2)), "{end}: {ended:?}");
    }

    fs::create_dir(project.path("folder")).unwrap();
    let unknown =
        "unknown format; expected a recording (`deftool run --record`, `deftool chat --record`), a journal";
    let newer = String::from_utf8(whole.clone()).unwrap().replacen("\"version\":3", "\"version\":9", 1);
    let mut broken = whole.clone();
    broken.extend_from_slice(b"{\"record\":\n{}\n");
    let line = newer.lines().count() + 1;
    for (name, content, expected) in [
        ("empty", &b""[..], String::from("empty: the file is empty")),
        ("blank", b"\n \n", String::from("blank: the file is empty")),
        ("text", b"hello", format!("text: {unknown}")),
        ("image", b"\x89PNG\r\n\x1a\n\x00\xff", format!("image: {unknown}")),
        ("page", b"<!DOCTYPE html>", format!("page: {unknown}")),
        ("json", b"{\"a\": 1}\n", format!("json: {unknown}")),
        ("record", b"{\"record\": 1}\n", String::from("record:1: not a line of a recording: ")),
        ("new", newer.as_bytes(), String::from("new: unsupported recording format 9;")),
        (
            "events",
            b"{\"type\":\"text\",\"text\":\"a\"}\n",
            String::from("events:1: not a line of a list of events: the first event must be `submitted`"),
        ),
        ("list", b"{\"type\":\"other\"}\n", String::from("list: no event of `deftool run --json`")),
    ] {
        project.write(name, content);
        let ended = project.run(&["view", name]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{name}: {ended:?}");
        assert!(ended.stderr.starts_with(&format!("error: {expected}")), "{name}: {ended:?}");
        assert!(!project.path(&format!("{name}.html")).exists(), "{name}");
    }
    // What precedes an invalid line is shown.
    project.write("broken", &broken);
    let ended = project.run(&["view", "broken", "-o", "-"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let expected = format!("error: broken:{line}: not a line of a recording: ");
    assert!(
        ended.stderr.starts_with(&expected) && ended.stderr.ends_with("; the page shows what can be read\n"),
        "{ended:?}"
    );
    let broken = self::data(&ended.stdout);
    assert!(kinds(&broken).ends_with(&[String::from("finished")]), "{broken}");
    assert!(broken["files"][0]["damage"][0].as_str().unwrap().starts_with(&format!("broken:{line}: ")));
    for name in ["missing", "folder"] {
        let ended = project.run(&["view", "a.jsonl", name]);
        assert!(
            ended.code == Some(2) && ended.stderr.starts_with(&format!("error: cannot read {name}: ")),
            "{ended:?}"
        );
    }
    assert_eq!(project.run(&["view"]).code, Some(2));
    assert_eq!(project.run(&["view", "a", "b", "c"]).code, Some(2));
}
