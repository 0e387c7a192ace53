//! A real backend: Arize Phoenix, which `tests/otel/install` installs. CI sets `DEFTOOL_OTEL=required`.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use deftool_test_support::can_use;
use serde_json::Value;

use crate::support::project::{Ended, Project, command_in};

/// Time limit for the start of Phoenix, which creates its database. Only for a test that fails.
const START_LIMIT: Duration = Duration::from_secs(300);
/// Maximum size of the picture, in bytes.
const MAX_PICTURE: u64 = 200_000;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the program. Only CI requires it.
fn program() -> Option<PathBuf> {
    let program = root().join("tests/otel/.venv/bin/phoenix");
    can_use("Phoenix", program.exists(), "DEFTOOL_OTEL", "tests/otel/install").then_some(program)
}

/// A running Phoenix.
struct Phoenix {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Phoenix {
    fn start(program: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Released before Phoenix starts: another process could take them, but does not.
        let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [port, grpc] = ports.map(|listener| listener.local_addr().unwrap().port());
        let mut command = Command::new(program);
        command.arg("serve").current_dir(folder.path()).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.env("PHOENIX_HOST", "127.0.0.1").env("PHOENIX_WORKING_DIR", folder.path());
        command.env("PHOENIX_PORT", port.to_string()).env("PHOENIX_GRPC_PORT", grpc.to_string());
        command.env("PHOENIX_TELEMETRY_ENABLED", "false").env("PHOENIX_ALLOW_EXTERNAL_RESOURCES", "false");
        let phoenix = Self { process: command.spawn().unwrap(), port, _folder: folder };
        let begun = Instant::now();
        while phoenix.get("/healthz").is_none() {
            assert!(begun.elapsed() < START_LIMIT, "Phoenix did not start");
            std::thread::sleep(Duration::from_millis(100));
        }
        phoenix
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Requests a page. Returns `None` without an answer with status 200.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.contains(" 200 ").then(|| body.to_owned())
    }

    /// Returns the elements of a list of the project `deftool`.
    fn list(&self, name: &str) -> Vec<Value> {
        let page = self.get(&format!("/v1/projects/deftool/{name}")).unwrap_or_default();
        let page: Value = serde_json::from_str(&page).unwrap_or_default();
        page["data"].as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Phoenix {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The reply arrives word by word, so that the picture shows times.
const SCENARIO: &str = r#"(defscenario
 :name "weather"
 (reply :text "Let me look. " :chunk 3 :every "20ms" (call "get_weather" (:location "Paris" :unit "celsius")))
 (reply :when (:last-role tool) :text "It is 21 degrees in Paris." :chunk 3 :every "20ms"))
"#;

#[test]
fn a_trace_arrives_with_its_tokens() {
    let Some(program) = program() else { return };
    let phoenix = Phoenix::start(&program);
    let project = Project::empty();
    project.write("weather.eld", SCENARIO);
    let (scenario, deftool) =
        (project.path("weather.eld").display().to_string(), env!("CARGO_BIN_EXE_deftool"));
    let prompt = "What is the weather in Paris?";
    let arguments = ["stub", &scenario, "--quiet", "--", deftool, "run", prompt, "--trust"];
    let mut command = command_in(&root().join("examples/quickstart"), &arguments);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", phoenix.url());
    command.env("OTEL_RESOURCE_ATTRIBUTES", "openinference.project.name=deftool");
    command.env("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true");
    let ended = Ended::of(command.output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("warning"), "{ended:?}");

    // Phoenix stores spans in the background.
    let begun = Instant::now();
    let spans = loop {
        let spans = phoenix.list("spans?sort=start_time&order=asc");
        if spans.len() >= 4 {
            break spans;
        }
        assert!(begun.elapsed() < deftool_test_support::HANG_LIMIT, "{spans:#?}");
        std::thread::sleep(Duration::from_millis(100));
    };
    let seen = spans.iter().map(|span| {
        let text = |name: &str| span[name].as_str().unwrap_or_default();
        format!("{} {}", text("span_kind"), text("name"))
    });
    let mut seen: Vec<String> = seen.collect();
    seen.sort();
    let expected =
        ["AGENT invoke_agent quickstart", "LLM chat stub", "LLM chat stub", "TOOL execute_tool get_weather"];
    assert_eq!(seen, expected);
    let root_span = spans.iter().find(|span| span["span_kind"] == "AGENT").unwrap();
    let chats: Vec<&Value> = spans.iter().filter(|span| span["span_kind"] == "LLM").collect();
    for span in spans.iter().filter(|span| span["span_kind"] != "AGENT") {
        assert_eq!(span["parent_id"], root_span["context"]["span_id"], "{span:#?}");
    }
    // Phoenix derives its own attributes from those of the conventions.
    let tokens =
        |name: &str| -> u64 { chats.iter().map(|chat| chat["attributes"][name].as_u64().unwrap()).sum() };
    let [trace] = <[Value; 1]>::try_from(phoenix.list("traces")).unwrap();
    assert_eq!(trace["token_count_prompt"], tokens("llm.token_count.prompt"), "{trace:#?}");
    assert_eq!(trace["token_count_completion"], tokens("llm.token_count.completion"), "{trace:#?}");
    assert!(tokens("llm.token_count.completion") > 10, "{chats:#?}");
    assert_eq!(root_span["attributes"]["llm.input_messages.0.message.content"], prompt);
    let tool = spans.iter().find(|span| span["span_kind"] == "TOOL").unwrap();
    assert_eq!(tool["attributes"]["tool.parameters.location"], "Paris", "{tool:#?}");

    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (page, selected) = (
        format!("projects/{}/traces/{}", text(&trace["project_id"]), text(&trace["trace_id"])),
        text(&chats[1]["id"]),
    );
    take_picture(&project, &format!("{}/{page}?selectedSpanNodeId={selected}", phoenix.url()));
}

/// Takes a picture of a page. With `UPDATE_EXPECT=1`, it is the one of the documentation.
fn take_picture(project: &Project, page: &str) {
    let image = root().join("docs/images/phoenix.png");
    let file =
        if std::env::var_os("UPDATE_EXPECT").is_some() { image.clone() } else { project.path("phoenix.png") };
    let profile = format!("--user-data-dir={}", project.path("profile").display());
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--disable-dev-shm-usage",
    ]);
    command.args(["--force-color-profile=srgb", "--window-size=1280,860", "--virtual-time-budget=20000"]);
    command.args([profile, format!("--screenshot={}", file.display())]).arg(page);
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let length = fs::metadata(&file).unwrap().len();
            assert!((20_000..MAX_PICTURE).contains(&length), "the picture has {length} bytes");
        }
        Err(_) => {
            can_use("Chromium", false, "DEFTOOL_BROWSER", "the package manager");
        }
    }
    assert!(fs::metadata(image).unwrap().len() < MAX_PICTURE);
}
