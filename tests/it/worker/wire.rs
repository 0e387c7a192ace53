//! What real servers do that they should not. Each case is a server's script and how the request must end.

mod answers;
mod streams;
mod turns;

use std::time::Duration;

use super::bench::*;
use crate::support::server::{Answer, Server};

/// How a request must end.
struct Case {
    name: &'static str,
    answers: Vec<Answer>,
    /// Kind of the failure; empty: none.
    kind: &'static str,
    /// All of these must be in its detail.
    says: &'static [&'static str],
    text: &'static str,
    /// How many requests the server gets.
    posts: usize,
}

fn fails(
    name: &'static str,
    answers: impl IntoIterator<Item = Answer>,
    kind: &'static str,
    says: &'static [&'static str],
) -> Case {
    Case { name, answers: answers.into_iter().collect(), kind, says, text: "", posts: 1 }
}

fn gives(name: &'static str, answers: impl IntoIterator<Item = Answer>, text: &'static str) -> Case {
    Case { name, answers: answers.into_iter().collect(), kind: "", says: &[], text, posts: 1 }
}

impl Case {
    fn text(self, text: &'static str) -> Self {
        Self { text, ..self }
    }

    fn posts(self, posts: usize) -> Self {
        Self { posts, ..self }
    }

    /// What was wrong, if anything was.
    async fn play(self) -> Option<String> {
        let Self { name, answers, kind, says, text, posts } = self;
        let server = Server::script(answers);
        let config = with_timers(|timers| {
            timers.stall = Duration::from_millis(600);
            timers.headers = Some(Duration::from_secs(5));
        });
        let ended = ask(&worker(&server, config)).await;
        let outcome = &ended.outcome;
        let detail = outcome.detail.clone().unwrap_or_default();
        let seen = server.posts().len();
        let url = format!("{}/chat/completions", server.endpoint());
        let is_right = outcome.kind.as_deref().unwrap_or_default() == kind
            && outcome.text == text
            && says.iter().all(|part| detail.contains(&part.replace("URL", &url)))
            && seen == posts;
        (!is_right).then(|| format!("{name}: {seen} requests, {outcome:#?}"))
    }
}

async fn play_all(cases: Vec<Case>) {
    let wrong: Vec<String> = futures_util::future::join_all(cases.into_iter().map(Case::play))
        .await
        .into_iter()
        .flatten()
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
