//! The worker process: it plans and runs statements for a server, one at a time. A statement can harm only this process:
//! the server then ends it and starts another.

use std::future::Future;
use std::pin::{Pin, pin};
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use binlogz_query::{AskTables, Queries};
use tokio::io::{AsyncWriteExt, Stdout};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::QueryServerError as Error;
use crate::frames::{AskedStatement, FrameKind, Frames, frame};
use crate::refusal::{Blame, StatementRefusal};

/// The most bytes of a message of rows. Several rows are cut into messages of some megabytes, but one is not, and the server holds
/// messages until their clients take them.
const ROWS_SIZE_MAX: usize = 64 << 20;

/// How long a worker waits until its rows are taken: practically for ever, since the server ends a worker whose rows nobody takes.
pub const ROWS_PATIENCE: Duration = Duration::from_secs(365 * 86_400);

/// Whether a statement is only planned, or run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementWork {
    /// Plan it: [`WorkerOutput::planned`], and nothing else.
    Plan,
    /// Plan it and run it: [`WorkerOutput::planned`], rows, [`WorkerOutput::end`].
    Run,
}

impl StatementWork {
    /// The work that a server's request is; `None`: it is no request.
    fn of(kind: FrameKind) -> Option<Self> {
        match kind {
            FrameKind::Plan => Some(StatementWork::Plan),
            FrameKind::Run => Some(StatementWork::Run),
            FrameKind::Tables | FrameKind::NoTables | FrameKind::AskTables => None,
            FrameKind::Ready | FrameKind::Planned | FrameKind::Rows | FrameKind::End => None,
            FrameKind::Failed => None,
        }
    }
}

/// A worker's half of a protocol: what its statements and answers mean.
pub trait WorkerProtocol {
    /// The number by which statements name it.
    fn code(&self) -> u8;

    /// Answers a statement. An error is told to the server, whatever was answered before it.
    fn answer<'a>(
        &'a self,
        queries: &'a Queries,
        work: StatementWork,
        asked: AskedStatement,
        output: &'a WorkerOutput,
    ) -> AnswerFuture<'a>;
}

/// Answers a statement when it is polled.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Result<(), StatementRefusal>> + 'a>>;

/// Someone who waits for the user tables that there are.
type WaitsForTables = SyncSender<Result<Vec<u8>, String>>;

/// A worker's questions for its server.
#[derive(Debug)]
pub struct WorkerQuestions(UnboundedReceiver<WaitsForTables>);

/// Two ends: the one by which a worker's engine asks for the user tables, and the one that takes its questions to the
/// server.
pub fn questions() -> (AskTables, WorkerQuestions) {
    let (sender, receiver) = unbounded_channel::<WaitsForTables>();
    let ask = move || {
        let (answer, answered) = sync_channel(1);
        let asked = sender.send(answer).map_err(|_| ());
        asked
            .and_then(|()| answered.recv().map_err(|_| ()))
            .unwrap_or_else(|()| Err("the server ended".to_owned()))
    };
    (Arc::new(ask), WorkerQuestions(receiver))
}

/// Answers a server on standard input and output, until it ends: each statement by its protocol.
///
/// # Errors
///
/// A server that says something else.
pub async fn work(
    queries: Queries,
    mut questions: WorkerQuestions,
    protocols: &[&dyn WorkerProtocol],
) -> Result<(), Error> {
    let mut frames = Frames::new(tokio::io::stdin());
    let output = WorkerOutput(Mutex::new(tokio::io::stdout()));
    let failed = |error: &dyn std::fmt::Display| Error::of(&"server", error);
    output.send(FrameKind::Ready, &[]).await?;
    // A request that came before the last answer was all written: the server has read it already.
    let mut early = None;
    loop {
        let next = match early.take() {
            Some(early) => Some(early),
            None => frames.next().await.map_err(|error| failed(&error))?,
        };
        let Some((kind, body)) = next else { return Ok(()) };
        let asked = AskedStatement::of(body).ok_or_else(|| failed(&"a request that is none"))?;
        let protocol = protocols.iter().find(|protocol| protocol.code() == asked.protocol);
        let (Some(protocol), Some(work)) = (protocol, StatementWork::of(kind)) else {
            return Err(failed(&"a request that is none"));
        };
        let queries = match queries.within(usize::try_from(asked.memory).unwrap_or(usize::MAX)) {
            Ok(queries) => queries,
            Err(error) => {
                output.refuse(&error.into()).await?;
                continue;
            }
        };
        let mut answered = pin!(protocol.answer(&queries, work, asked, &output));
        let mut waiting = Vec::new();
        let answered = loop {
            tokio::select! {
                answered = answered.as_mut() => break answered,
                Some(waits) = questions.0.recv() => {
                    waiting.push(waits);
                    output.send(FrameKind::AskTables, &[]).await?;
                }
                told = frames.next(), if early.is_none() => {
                    let told = match told {
                        Ok(Some((FrameKind::Tables, body))) => Ok(body.to_vec()),
                        Ok(Some((FrameKind::NoTables, body))) => Err(String::from_utf8_lossy(&body).into_owned()),
                        Ok(Some(request)) => {
                            early = Some(request);
                            continue;
                        }
                        // The server has ended.
                        Ok(None) | Err(_) => process::exit(0),
                    };
                    if let Some(waits) = waiting.pop() {
                        // The statement that asked may have been stopped.
                        let _ = waits.send(told);
                    }
                }
            }
        };
        if let Err(refusal) = answered {
            output.refuse(&refusal).await?;
        }
    }
}

/// Standard output, for one frame at a time.
#[derive(Debug)]
pub struct WorkerOutput(Mutex<Stdout>);

impl WorkerOutput {
    async fn send(&self, kind: FrameKind, parts: &[&[u8]]) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::of(&"server", &error);
        let mut output = self.0.lock().await;
        output.write_all(&frame(kind, parts).map_err(failed)?).await.map_err(failed)?;
        output.flush().await.map_err(failed)
    }

    async fn refuse(&self, refusal: &StatementRefusal) -> Result<(), Error> {
        let StatementRefusal { blame, number, line } = refusal;
        let parts: [&[u8]; 3] = [&[blame.byte()], &number.to_le_bytes(), line.as_bytes()];
        self.send(FrameKind::Failed, &parts).await
    }

    async fn tell(&self, kind: FrameKind, parts: &[&[u8]]) -> Result<(), StatementRefusal> {
        let told = self.send(kind, parts).await;
        told.map_err(|error| StatementRefusal::new(Blame::Program, error.to_string()))
    }

    /// Tells that the statement was planned, and what the protocol says of the plan, in parts that are joined.
    ///
    /// # Errors
    ///
    /// A server that has ended.
    pub async fn planned(&self, parts: &[&[u8]]) -> Result<(), StatementRefusal> {
        self.tell(FrameKind::Planned, parts).await
    }

    /// Sends a message of rows.
    ///
    /// # Errors
    ///
    /// One that is too large, a server that has ended.
    pub async fn rows(&self, message: &[u8]) -> Result<(), StatementRefusal> {
        if message.len() > ROWS_SIZE_MAX {
            return Err(too_large(message.len()));
        }
        self.tell(FrameKind::Rows, &[message]).await
    }

    /// Tells that there are no more rows.
    ///
    /// # Errors
    ///
    /// A server that has ended.
    pub async fn end(&self) -> Result<(), StatementRefusal> {
        self.tell(FrameKind::End, &[]).await
    }
}

fn too_large(size: usize) -> StatementRefusal {
    let size = size >> 20;
    let max = ROWS_SIZE_MAX >> 20;
    let line = format!(
        "a row takes {size} MiB as a message, expected at most {max} MiB: leave its large columns out, or ask binlogz sql, which has no \
         such limit"
    );
    StatementRefusal::new(Blame::Limit, line)
}
