//! Completes lines about which a worker can't know everything: Maxwell's need the number that ends their transaction, and
//! Debezium's blocks of a transaction count all of its rows, whichever worker wrote them.
//!
//! ```text
//! lines with marks, in order → Resolver ── xids.rs     Maxwell: the transaction's number
//!                                       └─ orders.rs   Debezium: the rows' numbers, BEGIN and END
//! ```
//!
//! Workers write bytes that JSON can't have: [`MARK`] stands in a row's line where text is missing, [`END`] and [`ROWS`]
//! begin lines of their own, which are no output.

pub(super) mod orders;
pub(super) mod xids;

use std::io::{self, Write};

use binlogz_print::line_run::LineCompletion;

use crate::settings::{ChangeFormat, ChangeSettings};

/// Stands in a row's line.
pub(super) const MARK: u8 = 0;
/// Begins the line that ends a transaction.
pub(super) const END: u8 = 1;
/// Begins the line before rows of a table.
pub(super) const ROWS: u8 = 2;

/// Completes lines about which a worker can't know everything: those of Maxwell and those of Debezium.
#[derive(Debug)]
pub struct Resolver(ResolverKind);

#[derive(Debug)]
enum ResolverKind {
    Xids(xids::Xids),
    Orders(orders::Orders),
}

impl Resolver {
    /// The resolver for lines with these settings, if they need one.
    pub fn new(settings: &ChangeSettings<'_>) -> Option<Self> {
        match settings.format {
            ChangeFormat::Maxwell => Some(Resolver(ResolverKind::Xids(xids::Xids::default()))),
            ChangeFormat::Debezium if settings.transaction_metadata => {
                Some(Resolver(ResolverKind::Orders(orders::Orders::new(settings.with_key))))
            }
            ChangeFormat::Debezium | ChangeFormat::Canal => None,
        }
    }
}

impl LineCompletion for Resolver {
    fn take(&mut self, lines: &[u8], mut out: &mut dyn Write) -> io::Result<()> {
        match &mut self.0 {
            ResolverKind::Xids(xids) => xids.take(lines, &mut out),
            ResolverKind::Orders(orders) => orders.take(lines, &mut out),
        }
    }
}
