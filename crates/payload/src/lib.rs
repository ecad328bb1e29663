//! Compresses and expands the transactions of a MySQL binary log.
//!
//! [`TransactionCompressor`] puts all events of a transaction after its GTID event into one
//! `Transaction_payload` event; [`TransactionExpander`] takes them out again. Both make a [`Rewritten`],
//! whose positions, lengths and checksums a [`PositionWriter`] fills in. They are inverses: a transaction
//! that would not come back byte for byte is left as it is, with the reason ([`Ineligible`]). And they are
//! canonical: our bytes are mysqld's. [`verify`] checks payloads, [`Expander`] expands one.
//!
//! ```
//! use binlogz_binlog::Framing;
//! use binlogz_binlog::event::{FormatDescription, PostHeaderLengths};
//! use binlogz_payload::{
//!     CompressOptions, LogContext, PieceContext, PositionWriter, Spool, SpoolMemory, TransactionCompressor,
//! };
//!
//! let log = std::fs::read("sample/binlog.000001")?;
//! let first = Framing::new().next_frame(&log[4..])?.expect("a format description").verify()?;
//! let description = FormatDescription::decode_frame(&first)?;
//! let context = LogContext {
//!     framing: Framing::of(&description),
//!     post_header_lengths: PostHeaderLengths::from(&description),
//!     relay_log: false,
//! };
//! let begin = 4 + first.bytes().len();
//! let piece = PieceContext { offset: begin as u64, context, announced: true };
//!
//! let mut plain = log[begin..].to_vec();
//! let mut compressor = TransactionCompressor::new(CompressOptions::default())?;
//! let spool = Spool::new(&SpoolMemory::new(16 << 20), Vec::new());
//! let mut rewritten = compressor.batch(&plain, piece, spool)?;
//! let mut compressed = Vec::new();
//! let mut writer = PositionWriter::resume(&mut compressed, piece.offset, true);
//! writer.write(&mut rewritten, &mut plain, |_, _| {})?;
//! writer.finish()?;
//! assert!(rewritten.tally.changed > 0 && compressed.len() < plain.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Works on slices, readers and writers; files, threads and temporary files are `binlogz-flow`'s.

mod candidate;
pub mod compress;
pub mod compressor;
pub mod context;
pub mod eligibility;
pub mod error;
pub mod expand;
pub mod expander;
pub mod extract;
mod feed;
pub mod format_description;
pub mod level;
pub mod library;
mod payload_event;
pub mod payload_stream;
pub mod position_writer;
mod provenance;
pub mod recipe;
mod reproduction;
pub mod rewritten;
mod scan;
pub mod server;
pub mod spool;
pub mod statistics;
pub mod switch;
pub mod verify;

pub use compress::{CompressOptions, TransactionCompressor};
pub use compressor::Compressor;
pub use context::{LogContext, PieceContext, PositionRule};
pub use eligibility::{Ineligible, Tally};
pub use error::{Error, Result};
pub use expand::TransactionExpander;
pub use expander::{Expander, expanded_size_max};
pub use extract::{Extracted, Extraction, TransactionExtractor, TransactionSize};
pub use level::CompressionLevel;
pub use library::Library;
pub use payload_stream::{PayloadSizes, PayloadStream, check_inside};
pub use position_writer::{PieceBytes, PositionWriter};
pub use provenance::{Provenance, provenance};
pub use recipe::Recipe;
pub use rewritten::{Rewritten, RewrittenSpan};
pub use server::ServerGeneration;
pub use spool::{Spool, SpoolMemory};
