//! Stopped calls release their threads, and calls do not wait for other calls.

use super::*;

/// Returns a runner with two threads. Each log line blocks its script's thread until there is a second log line.
fn meeting() -> ScriptRunner {
    let (lines, arrived) = (Mutex::new(0), Condvar::new());
    let sink = ScriptSink::new(move |_| {
        let mut lines = lines.lock().unwrap();
        *lines += 1;
        arrived.notify_all();
        drop(arrived.wait_timeout_while(lines, Duration::from_secs(10), |lines| *lines % 2 == 1).unwrap());
    });
    ScriptRunner::new(RunnerOptions { threads: 2, max_threads: 2, sink, ..RunnerOptions::default() })
}

#[test]
fn a_waiting_script_stops_at_its_deadline() {
    let mut script = script("return function() while true do pcall(task.wait, 3600) end end");
    script.timeout = Some(Duration::from_millis(100));
    let error = run(script, json!({})).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Timeout);
    assert!(error.message.contains("100 ms"), "{error}");
}

#[test]
fn dropping_the_future_stops_a_spinning_script() {
    let (runner, _) = runner_with_events();
    let script = Arc::new(script("return function() while true do end end"));
    block_on(async {
        let spinning = runner.value_of(script, call(json!({})), CallContext::default());
        assert!(tokio::time::timeout(Duration::from_millis(60), spinning).await.is_err());
    });
    let normal = Arc::new(self::script("return function() return 'next' end"));
    let ended = block_on(runner.value_of(normal, call(json!({})), CallContext::default()));
    assert_eq!(ended, Ok(json!("next")));
}

#[test]
fn a_spinning_script_does_not_delay_others() {
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, ..RunnerOptions::default() });
    let spinner = Arc::new(script("return function() while true do end end"));
    let normal = Arc::new(script("return function() return 1 end"));
    let sleeper = Arc::new(script("return function() task.wait(0.05) return 2 end"));
    block_on(async {
        let context = CallContext { timeout: Some(Duration::from_secs(60)), ..CallContext::default() };
        let spinning = tokio::spawn(runner.value_of(spinner, call(json!({})), context));
        let waiting = tokio::spawn(runner.value_of(sleeper, call(json!({})), CallContext::default()));
        tokio::time::sleep(Duration::from_millis(10)).await;
        for _ in 0..20 {
            let ended = runner.value_of(Arc::clone(&normal), call(json!({})), CallContext::default()).await;
            assert_eq!(ended, Ok(json!(1)));
        }
        assert!(!spinning.is_finished(), "the other calls waited for the spinning call");
        // A call that was on the same thread before waits, and continues when the spinning call is stopped.
        spinning.abort();
        assert_eq!(waiting.await.unwrap(), Ok(json!(2)));
    });
}

#[test]
fn calls_run_on_two_threads() {
    let runner = meeting();
    assert!(block_on(two_calls_overlap(&runner)), "the calls ran sequentially");
}

#[test]
fn the_top_level_has_its_own_time_limit() {
    let error = run_source("pcall(function() while true do end end) while true do end").unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Load);
    assert!(error.message.contains("250 ms"), "{error}");
}

#[test]
fn a_timeout_reports_the_location_of_the_script() {
    let mut script = script("return function()\n  while true do\n  end\nend");
    script.timeout = Some(Duration::from_millis(250));
    let error = run(script, json!({})).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Timeout);
    assert_eq!(error.details.as_deref(), Some("scripts/probe.lua:2 in the script"));
}

#[test]
fn a_waiting_call_is_not_delayed_by_a_spinning_call() {
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, max_threads: 1, ..RunnerOptions::default() });
    let waiter = Arc::new(script("return function() task.wait(0.05) while true do task.wait(0.01) end end"));
    let spinner = Arc::new(script("return function() while true do end end"));
    block_on(async {
        let limit = |limit| CallContext { timeout: Some(limit), ..CallContext::default() };
        let waiting = runner.value_of(waiter, call(json!({})), limit(Duration::from_millis(200)));
        let spinning = runner.value_of(spinner, call(json!({})), limit(Duration::from_secs(10)));
        tokio::select! {
            // The waiting call comes first: the only thread is free for it.
            biased;
            ended = waiting => assert_eq!(ended.unwrap_err().kind, ToolErrorKind::Timeout),
            spun = spinning => panic!("the spinning call ended first: {spun:?}"),
        }
    });
}

/// The callback is called after the cancellation: from a `pcall` that the stop interrupts, from a task, and during the
/// next call on the same thread.
#[test]
fn a_callback_after_cancellation_is_ignored() {
    let (runner, events) = runner_with_events();
    for source in [
        "return function(done) pcall(function() while true do end end) done('late') end",
        "return function(done) task.delay(0.05, done, 'late') pcall(task.wait, 60) done('later') end",
        "return function(done) task.spawn(function() pcall(task.wait, 60) done('late') end) end",
    ] {
        let script = Arc::new(asynchronous(source));
        block_on(async {
            let calling = runner.value_of(script, call(json!({})), CallContext::default());
            drop(tokio::time::timeout(Duration::from_millis(20), calling).await);
        });
        let next = Arc::new(asynchronous("return function(done) task.wait(0.1) done('next') end"));
        let ended = block_on(runner.value_of(next, call(json!({})), CallContext::default()));
        assert_eq!(ended, Ok(json!("next")), "{source}");
    }
    assert_eq!(logged(&events), Vec::<String>::new());
}

#[test]
fn dropping_the_runner_ends_its_calls() {
    let runner = runner();
    let spinning = runner.value_of(
        Arc::new(script("return function() while true do end end")),
        call(json!({})),
        CallContext::default(),
    );
    block_on(async {
        let (ended, ()) = tokio::join!(spinning, async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            drop(runner);
        });
        assert_eq!(ended.unwrap_err().kind, ToolErrorKind::Canceled);
    });
}

#[test]
fn a_changed_script_replaces_the_old_one() {
    let runner = runner();
    let ended = |version: &str| {
        let script = script(&format!("return function() return '{version}' end"));
        block_on(runner.value_of(Arc::new(script), call(json!({})), CallContext::default()))
    };
    for version in ["one", "two", "three"] {
        assert_eq!(ended(version), Ok(json!(version)));
    }
}

#[test]
fn calls_beyond_the_limit_of_a_thread_all_end() {
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, max_threads: 1, ..RunnerOptions::default() });
    let waiter = Arc::new(script("return function() task.wait(0.01) return 1 end"));
    let ended = block_on(futures_util::future::join_all(
        (0..600).map(|_| runner.value_of(Arc::clone(&waiter), call(json!({})), CallContext::default())),
    ));
    assert!(ended.iter().all(|ended| *ended == Ok(json!(1))));
}

/// Deadlines and dropped futures at arbitrary moments of calls, on several threads.
#[test]
fn calls_can_be_stopped_at_any_moment() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let runner = Arc::new(runner());
    let sources = [
        "return function() while true do end end",
        "return function() while true do pcall(task.wait, 0.001) end end",
        "return function() local t = {} for i = 1, 300 do t[i] = { i } end return t end",
        "return function() task.spawn(function() while true do task.wait() end end) task.wait(0.002) return 1 end",
        "return function() return coroutine.wrap(function() task.wait(0.001) return json.decode('[1]') end)() end",
        "local n = 0 for i = 1, 20000 do n += i end return function() return n end",
    ];
    let scripts: Vec<Arc<Script>> = sources.iter().map(|source| Arc::new(script(source))).collect();
    let finished: Vec<_> = (0..8_u64)
        .map(|worker| {
            let (runner, scripts) = (Arc::clone(&runner), scripts.clone());
            runtime.spawn(async move {
                for round in 0..150_u64 {
                    let mixed = (worker * 7_919 + round * 104_729) % 1_000;
                    let script = Arc::clone(&scripts[(mixed % 6) as usize]);
                    let context = CallContext {
                        timeout: Some(Duration::from_micros(200 + mixed * 5)),
                        ..CallContext::default()
                    };
                    let ended = runner.value_of(script, call(json!({})), context);
                    drop(tokio::time::timeout(Duration::from_micros(mixed * 10), ended).await);
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for worker in finished {
            worker.await.unwrap();
        }
        let normal = Arc::new(script("return function() return 'alive' end"));
        assert_eq!(
            runner.value_of(normal, call(json!({})), CallContext::default()).await,
            Ok(json!("alive"))
        );
    });
}

/// A stop may occur while a state is created or a source is compiled, before anything can be interrupted.
#[test]
fn a_call_dropped_during_compilation_releases_its_thread() {
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, max_threads: 1, ..RunnerOptions::default() });
    let source = format!("while true do end {}", "local function f(a) return a end f(1) ".repeat(100));
    let slow = format!("while true do end {}", "x = {1, 2, 3} ".repeat(70_000));
    let normal = Arc::new(script("return function() return 'alive' end"));
    block_on(async {
        for (source, delay) in [(&slow, 3), (&slow, 20), (&source, 0), (&source, 1)] {
            let spinning = runner.value_of(Arc::new(script(source)), call(json!({})), CallContext::default());
            drop(tokio::time::timeout(Duration::from_millis(delay), spinning).await);
            let alive = runner.value_of(Arc::clone(&normal), call(json!({})), CallContext::default());
            let alive = tokio::time::timeout(Duration::from_secs(60), alive).await;
            assert_eq!(alive.expect("the thread is blocked"), Ok(json!("alive")));
        }
    });
}

/// Drops spinning top levels at arbitrary moments of their start.
#[test]
fn dropped_top_levels_release_their_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let runner = Arc::new(meeting());
    let workers: Vec<_> = (0..4_u64)
        .map(|worker| {
            let runner = Arc::clone(&runner);
            runtime.spawn(async move {
                let pooled = Arc::new(script("while true do end"));
                for round in 0..250_u64 {
                    let mixed = (worker * 7_919 + round * 104_729) % 1_000;
                    let script = if mixed % 4 == 0 {
                        Arc::clone(&pooled)
                    } else {
                        Arc::new(script("while true do end"))
                    };
                    let ended = runner.value_of(script, call(json!({})), CallContext::default());
                    drop(tokio::time::timeout(Duration::from_micros(mixed * 5), ended).await);
                }
            })
        })
        .collect();
    let ends = async {
        for worker in workers {
            worker.await.unwrap();
        }
        two_calls_overlap(&runner).await
    };
    let ended = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), ends).await });
    assert_eq!(ended, Ok(true), "a dropped call blocks its thread");
}
