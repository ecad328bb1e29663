//! Compresses and expands the transactions of a MySQL binary log.
//!
//! [`TransactionCompressor`] puts all events of a transaction after its GTID event into one
//! `Transaction_payload` event; [`TransactionExpander`] takes them out again. Both make a [`RewrittenPiece`],
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
//!
//! Each folder is a stage, and uses only those above it in this list:
//!
//! * [`codec`]: libzstd as servers drive it, and back;
//! * [`transaction`]: which events make a transaction, and whether it may be compressed;
//! * [`rewritten`]: the new form of a piece of a log, and its positions, lengths and checksums;
//! * [`mod@compress`]: transactions into payloads;
//! * [`expand`]: payloads into transactions;
//! * `verify.rs` checks logs; `statistics.rs` counts transactions as a server does; `switch.rs` has the SQL that turns
//!   compression on.

pub mod codec;
pub mod compress;
pub mod error;
pub mod expand;
pub mod rewritten;
pub mod statistics;
pub mod switch;
pub mod transaction;
pub mod verify;

pub use codec::compressor::Compressor;
pub use codec::expander::{Expander, expanded_size_max};
pub use codec::level::CompressionLevel;
pub use codec::library::Library;
pub use codec::provenance::{Provenance, provenance};
pub use codec::recipe::Recipe;
pub use codec::server::ServerGeneration;
pub use compress::extract::{ExtractedTransaction, Extraction, TransactionExtractor, TransactionSize};
pub use compress::transaction_compressor::{CompressOptions, TransactionCompressor};
pub use error::{Error, Result};
pub use expand::expanded_part::{EventsPart, ExpandedPart, PartSink};
pub use expand::payload_stream::{PayloadSizes, PayloadStream, check_inside};
pub use expand::transaction_expander::TransactionExpander;
pub use rewritten::arriving_events::{ArrivingEvents, ReservedEvent};
pub use rewritten::piece::{PayloadMark, RewrittenPiece, RewrittenSpan, TransactionMark};
pub use rewritten::position_writer::{PieceBytes, PositionWriter};
pub use rewritten::spool::{Spool, SpoolMemory};
pub use transaction::context::{LogContext, PieceContext, PositionRule};
pub use transaction::eligibility::{Ineligible, Tally};
