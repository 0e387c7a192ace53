//! A thousand concurrent streams: token latency, memory, and time to close after cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio::time::{sleep, sleep_until};

use crate::meter::{Cpu, allow_descriptors, now_us, spread, status};
use crate::reader::{Consumer, Reader, Reading, Way};
use crate::server::{Server, TOKEN_PACE, stamps};

pub(crate) const STREAMS: usize = 1_000;
/// Time in which the streams are started, evenly spaced.
pub(crate) const RAMP: Duration = Duration::from_secs(1);
/// Duration of the measurement after all streams have started.
pub(crate) const MEASUREMENT: Duration = Duration::from_secs(10);
/// Time in which individual streams are canceled at random.
const CANCELS: Duration = Duration::from_secs(2);

pub(crate) fn measure(way: Way) {
    allow_descriptors();
    let server = Server::start();
    let who = way.name();
    let before = status("VmHWM:");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let reader = Reader::new(&server, STREAMS, way);
        for cancels in ["one by one", "all at once"] {
            play(&server, &reader, who, cancels).await;
        }
    });
    let mb = |kib: u64| kib as f64 / 1024.0;
    let (peak, threads) = (mb(status("VmHWM:")), status("Threads:"));
    println!("streams {who:<8} peak {peak:.1} MB, {:.1} MB before; {threads} threads", mb(before));
}

/// Starts all streams, measures them, and cancels them. `cancels` states how they are canceled.
async fn play(server: &Server, reader: &Reader, who: &str, cancels: &str) {
    let watch = Arc::new(Watch::default());
    let names: Vec<String> =
        (0..STREAMS).map(|number| format!("{}-{number}", cancels.replace(' ', "-"))).collect();
    let (mut handles, mut tasks) = (Vec::new(), Vec::new());
    let start = Instant::now();
    for (name, number) in names.iter().zip(0..) {
        sleep_until((start + RAMP * number / STREAMS as u32).into()).await;
        let reading = reader.ask(&format!("stream {name} 60"));
        handles.push(reading.cancel.clone());
        tasks.push(watch.follow(reading));
    }
    while watch.begun.load(Ordering::Relaxed) < STREAMS {
        assert!(start.elapsed() < RAMP * 20, "the streams do not begin");
        sleep(TOKEN_PACE).await;
    }

    let cpu = Cpu::now();
    watch.is_on.store(true, Ordering::Relaxed);
    sleep(MEASUREMENT).await;
    watch.is_on.store(false, Ordering::Relaxed);
    let tokens = watch.tokens.load(Ordering::Relaxed);
    let (user, system) = cpu.each(tokens);

    let all_at_once = cancels == "all at once";
    let mut due: Vec<Duration> = (0..STREAMS)
        .map(|_| if all_at_once { Duration::ZERO } else { CANCELS.mul_f64(fastrand::f64()) })
        .collect();
    due.sort_unstable();
    let (start, mut canceled) = (Instant::now(), Vec::new());
    for (cancel, due) in handles.iter().zip(due) {
        if !due.is_zero() {
            sleep_until((start + due).into()).await;
        }
        canceled.push(now_us());
        cancel.cancel();
    }
    let (mut latencies, mut silent) = (Vec::new(), Vec::new());
    for task in tasks {
        let (seen, silent_at) = task.await.unwrap();
        latencies.extend(seen.into_iter().map(u64::from));
        silent.push(silent_at);
    }
    let closed = server.gone(&names).await;
    let after = |times: Vec<u64>| times.iter().zip(&canceled).map(|(time, cancel)| time - cancel).collect();
    println!(
        "streams {who:<8} CPU a token: {user:.2} µs user, {system:.2} µs system; {tokens} tokens in {MEASUREMENT:?}"
    );
    println!("streams {who:<8} latency of a token           {}", spread(latencies));
    println!("streams {who:<8} {cancels}: cancel → no event {}", spread(after(silent)));
    println!("streams {who:<8} {cancels}: cancel → closed   {}", spread(after(closed)));
}

/// State shared by all streams.
#[derive(Default)]
struct Watch {
    begun: AtomicUsize,
    /// Whether tokens are measured.
    is_on: AtomicBool,
    tokens: AtomicUsize,
}

impl Watch {
    /// Reads a stream to its end in a separate task. Returns the token latencies and the end time, in microseconds.
    fn follow(self: &Arc<Self>, reading: Reading) -> JoinHandle<(Vec<u32>, u64)> {
        let follower = Follower { watch: Arc::clone(self), seen: Vec::new(), has_begun: false };
        tokio::spawn(async move {
            let Follower { seen, .. } = reading.read(follower).await;
            (seen, now_us())
        })
    }
}

/// Measures one stream.
struct Follower {
    watch: Arc<Watch>,
    /// Small, because it counts in the peak memory.
    seen: Vec<u32>,
    has_begun: bool,
}

impl Consumer for Follower {
    fn see(&mut self, piece: &[u8]) {
        let now = now_us();
        for stamp in stamps(piece) {
            if !std::mem::replace(&mut self.has_begun, true) {
                self.watch.begun.fetch_add(1, Ordering::Relaxed);
            }
            if self.watch.is_on.load(Ordering::Relaxed) {
                self.watch.tokens.fetch_add(1, Ordering::Relaxed);
                self.seen.push(u32::try_from(now - stamp).unwrap());
            }
        }
    }
}
