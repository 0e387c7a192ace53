//! The pages in headless Chromium, if it is installed, in the full tests. CI sets `DEFTOOL_BROWSER=required`.
//!
//! A page is loaded as it is: messages of the console, such as rejected scripts, fail the test. Tests of the keyboard
//! load a copy without the policy and with a script that presses keys.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use deftool_test_support::server::{Answer, Server};
use deftool_test_support::{can_use, is_full};

use super::invalid::{HOSTILE, hostile_project};
use super::{large_recording, project, record};
use crate::support::project::{Project, STATE};

/// Maximum size of a picture in the documentation, in bytes.
const MAX_PICTURE: u64 = 200_000;

/// Whether Chromium is installed. Only CI requires it.
fn is_installed() -> bool {
    if !is_full() {
        return false;
    }
    let is_there = Command::new("chromium").arg("--version").output().is_ok();
    can_use("Chromium", is_there, "DEFTOOL_BROWSER", "the package manager")
}

/// Runs Chromium with a page of the project. Returns its output, and fails if the page logs a message.
fn chromium(project: &Project, page: &str, arguments: &[&str]) -> String {
    let url = format!("file://{}", project.path("").join(page).display());
    let profile = format!("--user-data-dir={}", project.path("profile").display());
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"])
        .args(["--enable-logging=stderr", "--force-color-profile=srgb", &profile])
        .args(arguments)
        .arg(url)
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !messages.contains("CONSOLE"), "{messages}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the document after its scripts ran.
fn dump(project: &Project, page: &str) -> String {
    let document = chromium(project, page, &["--dump-dom"]);
    assert!(
        document.contains("<li id="),
        "the page shows entries: {}",
        document.get(..2_000).unwrap_or(&document)
    );
    document
}

/// Runs a script in a copy of a page and returns the text that it stores in `document.title`.
fn with_script(project: &Project, page: &str, script: &str) -> String {
    let html = fs::read_to_string(project.path(page)).unwrap();
    let (before, rest) = html.split_once("<meta http-equiv").unwrap();
    let (_, after) = rest.split_once('>').unwrap();
    let after = after.replace("</body>", &format!("<script>{script}</script></body>"));
    project.write("driven.html", format!("{before}{after}"));
    let document = dump(project, "driven.html");
    document.split("<title>").nth(1).unwrap().split("</title>").next().unwrap().to_owned()
}

/// Presses keys on the focused element.
const PRESS: &str = "
function press(...keys) {
  for (const key of keys) document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
}
function focused() { return document.activeElement.closest('li')?.id ?? document.activeElement.type; }
const seen = [];
";

#[test]
fn the_page_of_hostile_content_runs_no_script_and_shows_escapes() {
    if !is_installed() {
        return;
    }
    let project = hostile_project();
    // Changed rows are open.
    let recorded = fs::read_to_string(project.path("a.jsonl")).unwrap();
    project.write("b.jsonl", recorded.replace("txet", "text"));
    assert_eq!(project.run(&["view", "a.jsonl"]).code, Some(0));
    assert_eq!(project.run(&["view", "a.jsonl", "b.jsonl"]).code, Some(0));
    for page in ["a.html", "a-b.html"] {
        let document = dump(&project, page);
        assert!(!document.contains("<title>owned") && !document.contains("<img"), "{page}");
        assert_eq!(document.matches("<script").count(), 2, "{page}");
        // The data block is text, so only the shown part counts.
        let shown = document.split("<script").next().unwrap().replace("</span>", "");
        assert!(!shown.contains(['\u{202e}', '\u{2066}', '\u{1b}', '\u{feff}', '\u{e0041}']), "{page}");
        assert!(
            shown.contains("&lt;/script&gt;&lt;script&gt;document.title='owned'&lt;/script&gt;"),
            "{page}"
        );
        for escape in ["⟨U+202E⟩", "⟨U+001B⟩[31mred", "⟨U+FEFF⟩⟨U+E0041⟩"] {
            assert!(shown.contains(escape), "{page}: {escape}");
        }
    }
    // The policy rejects scripts and images even if an element were added.
    let html = fs::read_to_string(project.path("a.html")).unwrap();
    let added = "<body><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";
    project.write("changed.html", html.replace("<body>", added));
    let url = format!("file://{}", project.path("changed.html").display());
    let profile = format!("--user-data-dir={}", project.path("profile").display());
    let arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", &profile, &url];
    let output = Command::new("chromium").args(arguments).output().unwrap();
    let document = String::from_utf8(output.stdout).unwrap();
    assert!(document.contains("<title>a.jsonl – deftool view</title>") && document.contains("<li id="));
    assert!(HOSTILE.contains("owned"));
}

#[test]
fn keys_move_search_and_open() {
    if !is_installed() {
        return;
    }
    let project = project();
    record(&project, "a.jsonl", super::counted("héllo", "Again."));
    assert_eq!(project.run(&["view", "a.jsonl"]).code, Some(0));
    let script = "
      press('j', 'j'); seen.push(focused());
      press('k'); seen.push(focused());
      press('/'); seen.push(focused());
      search.value = 'COUNTING'; search.dispatchEvent(new Event('input'));
      seen.push(results.textContent);
      press('Enter'); seen.push(results.textContent, document.querySelector('.current').id);
      search.blur(); press('n'); seen.push(results.textContent, focused());
      press('N', 'N'); seen.push(results.textContent);
      press('/'); search.value = 'nowhere'; search.dispatchEvent(new Event('input')); seen.push(results.textContent);
      press('Escape'); seen.push(search.value + results.textContent);
      const open = () => document.querySelectorAll('[aria-expanded=true]').length;
      press('e'); seen.push(open()); press('e'); seen.push(open());
      const filters = document.querySelectorAll('.filters button');
      filters[3].click();
      seen.push(filters[3].textContent, filters[3].getAttribute('aria-pressed'), document.querySelectorAll('li.call:not([hidden])').length);
      document.title = seen.join('|');";
    let seen = with_script(&project, "a.html", &format!("{PRESS}{script}"));
    let expected = "e1-2|e1-1|search|2 matching entries|match 1 of 2|e1-6|match 2 of 2|e1-8|match 2 of 2|no matches||14|0|calls|false|0";
    assert_eq!(seen, expected);

    // The slider shows the text as it streamed.
    let script = "
      const slider = document.querySelector('li.text input[type=range]');
      slider.value = 1; slider.dispatchEvent(new Event('input'));
      const content = document.querySelector('li.text .stream');
      const pending = content.querySelector('.pending').textContent;
      document.title = [content.textContent.replace(pending, ''), pending, slider.getAttribute('aria-valuetext').replace(/^[^,]*/, '')].join('|');";
    assert_eq!(with_script(&project, "a.html", script), "Coun|ting.|, delta 1 of 2");

    // A link to a search opens the first match.
    let document = chromium(&project, "a.html#q=Loading%20model", &["--dump-dom"]);
    assert!(document.contains("match 1 of 2"), "{document}");
    // Every button and field has a name, every id is unique, headings do not skip a level.
    let script = "
      const bad = [...document.querySelectorAll('button, input')].filter((e) => !(e.textContent || e.getAttribute('aria-label')).trim());
      const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
      const levels = [...document.querySelectorAll('h1, h2, h3, h4')].map((e) => Number(e.tagName[1]));
      const skips = levels.filter((level, at) => level > (levels[at - 1] ?? 0) + 1 && level < 4);
      const landmarks = ['header', 'main', 'footer', '[role=search]'].filter((name) => document.querySelectorAll(name).length !== 1);
      document.title = [bad.length, ids.length - new Set(ids).size, skips.length, landmarks.length].join(' ');";
    assert_eq!(with_script(&project, "a.html", script), "0 0 0 0");
}

/// A file with several runs begins with their list. Equal calls of a run are one entry, which all their links name.
#[test]
fn runs_are_listed_and_equal_calls_are_one_entry() {
    if !is_installed() {
        return;
    }
    let project = project();
    let server = Server::script([
        Answer::calls(&[("count", "{\"text\": \"abc\"}"), ("broken", "{}")]),
        Answer::calls(&[("count", "{\"text\": \"abc\"}")]),
        Answer::text("It is <b>3</b>."),
        Answer::text("You are welcome."),
    ]);
    let endpoint = server.endpoint();
    let arguments = ["chat", "--no-save", "--endpoint", &endpoint, "--record", "chat.jsonl"];
    let ended = project.run_with_stdin(&arguments, b"How long is <i>abc</i>?\nThanks.\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(project.run(&["view", "chat.jsonl"]).code, Some(0));
    let script = "
      const texts = (selector, ...columns) => [...document.querySelectorAll(selector)].map((e) => columns.length ? columns.map((at) => e.children[at].textContent).join(' ') : e.textContent);
      seen.push(...texts('nav[aria-label=Requests] tbody tr', 0, 1, 2));
      seen.push(...texts('.talk .content'), ...texts('main .tools tbody tr', 0, 1, 3), ...texts('li.call b'));
      press('/'); search.value = '\"length\": 3'; search.dispatchEvent(new Event('input')); seen.push(results.textContent); search.blur();
      location.hash = 'e1-5'; followHash(); seen.push(focused(), texts('.current h4').filter((text) => text.startsWith('Call ')).length);
      document.title = seen.join('|');";
    let seen = with_script(&project, "chat.html", &format!("{PRESS}{script}"));
    let expected = "Request 1 How long is &lt;i&gt;abc&lt;/i&gt;? completed|Request 2 Thanks. completed\
        |How long is &lt;i&gt;abc&lt;/i&gt;?|It is &lt;b&gt;3&lt;/b&gt;.|Thanks.|You are welcome.\
        |count 2 0|broken 1 1|count × 2|broken|1 matching entry|e1-2|2";
    assert_eq!(seen, expected);
}

#[test]
fn a_page_with_10_000_entries_is_shown_and_searched() {
    if !is_installed() {
        return;
    }
    let project = project();
    large_recording(&project, 10_000, 10_000);
    assert_eq!(project.run(&["view", "large.jsonl"]).code, Some(0));
    let script = "
      const from = performance.now();
      search.value = 'text 9999'; search.dispatchEvent(new Event('input'));
      const elements = document.getElementsByTagName('*').length;
      document.title = [view.items.length, results.textContent, elements < 100000].join('|');
      document.title += '|' + Math.round(view.startedIn + performance.now() - from);";
    let seen = with_script(&project, "large.html", script);
    let (text, time) = seen.rsplit_once('|').unwrap();
    assert_eq!(text, "10003|1 matching entry|true");
    // Measured: 0.3 s. The limit is for a machine that runs other tests.
    assert!(time.parse::<u64>().unwrap() < 30_000, "{time} ms");
}

const SPECS: &str = r#"
(deftool :name "forecast" :description "Get the forecast for a city."
 :args ((:name "city" :type string :description "The city.")
        (:name "days" :type integer :minimum 1 :maximum 7 :description "The number of days.")))
(deftool :name "trains" :description "Find trains between two cities."
 :args ((:name "from" :type string :description "Where the trip starts.")
        (:name "to" :type string :description "Where the trip ends.")))
(deftool :name "book" :description "Book a train." :confirm t
 :args ((:name "train" :type string :description "The number of the train.")))
(defexit :name "done" :description "The task is done."
 :args ((:name "summary" :type string :description "What was done.")))
(defworker :name "travel" :tool-budget 4 :system "You plan trips." :on-tool-error report)
"#;

const FORECAST: &str = r#"return function(city, days)
  local start = os.clock()
  while os.clock() - start < 0.25 do end
  return { city = city, days = { { day = "Sat", sky = "sunny", high = 24 }, { day = "Sun", sky = "cloudy", high = 19 } } }
end
"#;

const TRAINS: &str = r#"return function(from, to)
  local start = os.clock()
  while os.clock() - start < 0.4 do end
  error("no connection from " .. from .. " to " .. to .. " on Sunday")
end
"#;

const SCENARIO: &str = r#"
(defscenario :name "trip"
 (error 503 :message "Loading model" :retry-after-ms 400)
 (reply :delay "300ms" :every "15ms"
  :reasoning "The user wants a weekend trip. I need the weather and the trains, and both tools can run at the same time."
  "Let me look at the weather and the trains. "
  (call "forecast" (:city "Lyon" :days 2))
  (call "trains" (:from "Paris" :to "Lyon")))
 (reply :delay "200ms" :every "20ms"
  :reasoning "No trains on Sunday. Saturday is sunny, so book the train on Saturday."
  "Saturday is sunny with 24 degrees. I book the 8:04. "
  (call "book" (:train "TGV 6607")))
 (reply :delay "150ms" :every "25ms"
  "Saturday will be sunny in Lyon, with a high of 24 °C. " (wait "500ms")
  "The booking was not approved, so no train is booked yet: the TGV 6607 leaves Paris at 8:04."
  (call "done" (:summary "Planned a trip to Lyon on Saturday; the train is not booked."))))
"#;

/// Records a run of the scenario.
fn record_trip(project: &Project, name: &str, scenario: &str) {
    project.write("trip.eld", scenario);
    let binary = env!("CARGO_BIN_EXE_deftool");
    let file = format!("{name}.jsonl");
    let prompt = "Plan a weekend trip from Paris to Lyon.";
    let ended = Command::new(binary)
        .args(["stub", "trip.eld", "--quiet", "--", binary, "run", prompt, "--record", &file])
        .current_dir(project.path(""))
        .env("XDG_STATE_HOME", STATE)
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
}

/// With `UPDATE_EXPECT=1`, takes the pictures of the documentation.
#[test]
fn a_run_and_a_difference_have_pictures() {
    if !is_installed() {
        return;
    }
    let project = Project::empty();
    project.write("specs/travel.eld", SPECS);
    project.write("scripts/forecast.lua", FORECAST);
    project.write("scripts/trains.lua", TRAINS);
    project.write("scripts/book.lua", "return function(train)\n  return train\nend\n");
    record_trip(&project, "monday", SCENARIO);
    let tuesday: Vec<&str> = SCENARIO.lines().filter(|line| !line.contains("(error 503")).collect();
    let tuesday = tuesday
        .join("\n")
        .replace("6607", "6611")
        .replace("8:04", "9:04")
        .replace("high of 24", "high of 23");
    record_trip(&project, "tuesday", &tuesday);
    assert_eq!(project.run(&["view", "monday.jsonl"]).code, Some(0));
    assert_eq!(project.run(&["view", "monday.jsonl", "tuesday.jsonl"]).code, Some(0));
    let document = dump(&project, "monday-tuesday.html");
    for mark in ["<del>6607</del>", "<ins>6611</ins>", ">left only<", ">changed<", "arguments.train"] {
        assert!(document.contains(mark), "{mark}");
    }
    for (page, picture, size) in [
        ("monday.html", "view.png", "1280,1000"),
        ("monday-tuesday.html", "view-difference.png", "1280,1000"),
    ] {
        let file = picture_file(&project, picture);
        let screenshot = format!("--screenshot={}", file.display());
        chromium(&project, page, &[&screenshot, &format!("--window-size={size}")]);
        let length = fs::metadata(&file).unwrap().len();
        assert!((20_000..MAX_PICTURE).contains(&length), "{picture} has {length} bytes");
    }
    for picture in ["view.png", "view-difference.png"] {
        let length = fs::metadata(images().join(picture)).unwrap().len();
        assert!(length < MAX_PICTURE, "{picture} has {length} bytes");
    }
}

fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images")
}

/// Returns the file of a picture: in the documentation if it is to be updated.
fn picture_file(project: &Project, name: &str) -> PathBuf {
    if std::env::var("UPDATE_EXPECT").is_ok() { images().join(name) } else { project.path(name) }
}
