//! Deviations of real servers. Each case consists of scripted answers and the expected end of the request. Most cases run
//! over each API.

mod answers;
mod messages;
mod responses;
mod streams;
mod turns;

use std::time::Duration;

use deftool_chat::Api;
use deftool_test_support::server::{Answer, Server};
use deftool_worker::WorkerConfig;

use super::harness::*;

/// A case and the expected end of the request.
struct Case {
    name: &'static str,
    api: Api,
    answers: Vec<Answer>,
    /// Kind of the failure; empty if there is none.
    kind: &'static str,
    /// Substrings of the failure's detail.
    detail_parts: &'static [&'static str],
    text: &'static str,
    /// Number of requests that the server receives.
    posts: usize,
}

fn fails(
    name: &'static str,
    answers: impl IntoIterator<Item = Answer>,
    kind: &'static str,
    detail_parts: &'static [&'static str],
) -> Case {
    let api = Api::ChatCompletions;
    Case { name, api, answers: answers.into_iter().collect(), kind, detail_parts, text: "", posts: 1 }
}

fn succeeds(name: &'static str, answers: impl IntoIterator<Item = Answer>, text: &'static str) -> Case {
    Case { text, ..fails(name, answers, "", &[]) }
}

impl Case {
    fn over(self, api: Api) -> Self {
        Self { api, ..self }
    }

    fn text(self, text: &'static str) -> Self {
        Self { text, ..self }
    }

    fn posts(self, posts: usize) -> Self {
        Self { posts, ..self }
    }

    /// Runs the case. Returns a description of the difference, if any.
    async fn play(self) -> Option<String> {
        let Self { name, api, answers, kind, detail_parts, text, posts } = self;
        let server = Server::script(answers);
        let config = with_timers(|timers| {
            timers.stall = Duration::from_millis(600);
            timers.headers = Some(Duration::from_secs(5));
        });
        let ended = ask(&worker(&server, WorkerConfig { api, ..config })).await;
        let outcome = &ended.outcome;
        let detail = outcome.detail.clone().unwrap_or_default();
        let received = server.posts();
        let url = format!("http://{}{}", server.address(), api_path(api));
        let is_as_expected = outcome.kind.as_deref().unwrap_or_default() == kind
            && outcome.text == text
            && detail_parts.iter().all(|part| detail.contains(&part.replace("URL", &url)))
            && received.len() == posts
            && received.iter().all(|post| post.path() == api_path(api));
        (!is_as_expected).then(|| format!("{name}, {api:?}: {} requests, {outcome:#?}", received.len()))
    }
}

/// Runs the cases of each API.
async fn play_each(cases: impl Fn(Api) -> Vec<Case>) {
    let over = |api| cases(api).into_iter().map(move |case| case.over(api));
    play_all(Api::ALL.into_iter().flat_map(over).collect()).await;
}

async fn play_all(cases: Vec<Case>) {
    let failed: Vec<String> = futures_util::future::join_all(cases.into_iter().map(Case::play))
        .await
        .into_iter()
        .flatten()
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
