//! SQL over binary logs on many machines, by Apache DataFusion Ballista.
//!
//! ```text
//! client      plans a statement, sends it                logical plan → scheduler
//! scheduler   divides it into stages, hands out tasks    physical plans → executors
//! losses      ends queries when an executor is lost
//! executor    reads logs with its own credentials        rows → other executors, client
//! quoted      names of tables in that plan, which DataFusion sends without quotes
//! codec       our tables and scans in those plans        query::shipped
//! session     what scheduler and executors have in common
//! standalone  all of them in one process: for tests
//! tell        what Ballista and executors tell, as lines
//! ```
//!
//! Nothing that is sent opens anything: plans have places, conditions and columns. Ballista's ports have no authentication, so
//! they listen on the loopback interface unless told otherwise.

mod client;
mod codec;
pub mod executor;
mod losses;
mod quoted;
pub mod scheduler;
mod session;
pub mod standalone;
pub mod tell;

pub use client::{ClusterClient, DEFAULT_PARTITION_SIZE, DEFAULT_SHUFFLE_PARTITIONS};
pub use codec::{LogicalCodec, PhysicalCodec};
// Its traits are what the codecs implement.
pub use datafusion_proto;
pub use quoted::quoted;

/// Why a part of a cluster ended.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    fn of(what: &str, error: &dyn std::fmt::Display) -> Self {
        Error(format!("{what}: {error}"))
    }
}
