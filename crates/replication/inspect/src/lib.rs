//! Asks servers which of their consumers would break if binary log transaction compression were turned on, and how to
//! prevent that.
//!
//! ```text
//! Asker        ask.rs          statements, and why one has no answer
//!   │ Facts    facts/          what one server tells: settings, consumers, threads, figures
//! findings     findings/       each a row: what, found, verdict, remedy
//!   │          knowledge.rs    which client reads compressed transactions, which server has which bug
//! plan         plan.rs         the commands to review
//! answer       answer.rs       yes or no, with what compressing would save
//!   │
//! Report       report.rs       of all servers; JSON as it is, text.rs for people, changes.rs since another one; surveyed_log.rs
//! ```
//!
//! Only statements that read are sent, and nothing is printed here. `binlogz-source` makes the connections.

mod answer;
mod ask;
mod changes;
mod examine;
mod facts;
mod findings;
mod knowledge;
mod plan;
mod report;
mod surveyed_log;
mod text;
mod version;

pub use answer::answered;
pub use changes::changes;
pub use examine::examine;
pub use knowledge::{Knowledge, KnowledgeError};
pub use report::{
    ChangedRow, CompressionAnswer, ConsumerFinding, Finding, FindingVerdict, InspectReport, PlanStep, Reads,
    SavingsEstimate, ServerReport,
};
pub use surveyed_log::{SurveyedLog, SurveyedThing};
pub use text::write_text;
pub use version::Version;
