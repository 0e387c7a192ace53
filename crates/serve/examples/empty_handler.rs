//! A workflow on Restate whose steps do nothing, to measure what a step costs: `benches/restate/run` uses it.
// The macros of the SDK generate items without documentation.
#![allow(missing_docs)]

use restate_sdk::prelude::*;

struct Empty;

#[workflow]
impl Empty {
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, steps: Json<usize>) -> HandlerResult<()> {
        for _ in 0..steps.into_inner() {
            ctx.run(|| async { Ok(()) }).await?;
        }
        Ok(())
    }
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("usage: empty_handler ADDRESS")?;
    let listener = tokio::net::TcpListener::bind(address).await?;
    let endpoint = Endpoint::builder().bind(Empty).build();
    HttpServer::new(endpoint).serve_with_cancel(listener, std::future::pending::<()>()).await;
    Ok(())
}
