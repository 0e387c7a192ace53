//! The cost of a text chunk from the socket to the consumer.

use futures_util::future::join_all;

use crate::meter::Cpu;
use crate::reader::{Consumer, Reader, Way};
use crate::server::{CHUNKS, PACED_CHUNKS, Server};

/// Number of concurrent replies and of rounds.
struct Load {
    what: &'static str,
    prompt: &'static str,
    chunks: usize,
    at_once: usize,
    times: usize,
}

const LOADS: [Load; 3] = [
    Load { what: "reads of 16 KiB", prompt: "pieces 16384", chunks: CHUNKS, at_once: 1, times: 400 },
    Load {
        what: "a chunk a piece, as fast as it goes",
        prompt: "chunks",
        chunks: CHUNKS,
        at_once: 1,
        times: 100,
    },
    Load {
        what: "a chunk a read, 20 × 1,000/s",
        prompt: "paced",
        chunks: PACED_CHUNKS,
        at_once: 20,
        times: 3,
    },
];

pub(crate) fn measure(way: Way) {
    let server = Server::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let who = way.name();
    for Load { what, prompt, chunks, at_once, times } in LOADS {
        let reader = Reader::new(&server, at_once, way);
        let (pieces, (user, system)) = runtime.block_on(async {
            let round = || async {
                join_all((0..at_once).map(|_| read(&reader, prompt))).await.into_iter().sum::<usize>()
            };
            round().await;
            let before = Cpu::now();
            let mut pieces = 0;
            for _ in 0..times {
                pieces += round().await;
            }
            (pieces, before.each(chunks * at_once * times))
        });
        let pieces = pieces as f64 / (chunks * at_once * times) as f64;
        println!(
            "text    {who:<8} {what:<36} {user:>6.2} µs user {system:>6.2} µs system a chunk, in {pieces:.2} pieces"
        );
    }
}

/// Reads one reply and returns the number of pieces.
async fn read(reader: &Reader, prompt: &str) -> usize {
    let reading = reader.ask(prompt);
    // In a separate task, like a real consumer.
    let Count { pieces, bytes } = tokio::spawn(reading.read(Count::default())).await.unwrap();
    assert!(bytes > PACED_CHUNKS, "{bytes} bytes are not the text");
    pieces
}

#[derive(Default)]
struct Count {
    pieces: usize,
    bytes: usize,
}

impl Consumer for Count {
    fn see(&mut self, piece: &[u8]) {
        self.pieces += 1;
        self.bytes += piece.len();
    }
}
