//! Converts the stored log into the form a reader can read: as received, compressed, or uncompressed.
//!
//! The input is a file of a log (`binlogz_relay_log`) and a form. The output is the bytes of that form with their positions, lengths
//! and checksums, to whatever sink the caller has: a client, a listing, or nothing. The relay owns the sockets and decides
//! which client gets which form. A form has no errors of its own: they are the log's.
//!
//! * `forms` is a log with what all its readers share;
//! * `translate` goes through a file of a form, transaction by transaction;
//! * `convert` changes one transaction: expanded, compressed, or with other clocks (`clock`);
//! * `masked` is the uncompressed form as it may leave by a policy, with names and positions of its own; `masking` masks a transaction, and
//!   `logged_tables` knows the columns by which it does;
//! * `checked` sends unchanged events, once their checksums were compared;
//! * `block` is a piece of a file, converted once by `block_maker`; `conversions` shares blocks and converters between all readers;
//! * `artificial_events` are in no file: a dump's first rotate and format description, heartbeats;
//! * `damage` says where a client can resume after damage that it need not read;
//! * `file_walk` goes through a whole file for its end, or for the events that `listing` shows.

pub mod artificial_events;
mod block;
mod block_maker;
mod checked;
mod clock;
mod conversions;
mod convert;
mod damage;
mod file_walk;
mod forms;
mod listing;
mod logged_tables;
mod masked;
mod masking;
mod translate;

pub use block::{Block, PlacedTransaction};
pub use block_maker::make_block;
pub use conversions::{ConversionCounts, Conversions, SharedBlock};
pub use damage::behind_damage;
pub use file_walk::{end_of, go_to_end, list_events};
pub use forms::Forms;
pub use masked::MaskedForm;
pub use translate::{FormSink, OpenedFile, Translator};
