//! Compresses every transaction at every level.

use binlogz_flow::measure::{Cost, Measure, Meter};
use binlogz_payload::{CompressionLevel, Error, Extracted, Ineligible};

use super::Part;
use super::figures::{Compressed, Figures};
use super::table_walk::TableWalk;

/// One transaction of so many is expanded again, for the time that takes.
const EXPANDED: u64 = 16;

/// Measures transactions; one a worker.
#[derive(Debug)]
pub struct ExactMeter {
    meter: Meter,
    walk: TableWalk,
    compressed: Vec<Compressed>,
    figures: Figures,
}

impl ExactMeter {
    /// A meter for these levels.
    ///
    /// # Errors
    ///
    /// No memory for a context.
    pub fn new(levels: &[CompressionLevel]) -> Result<Self, Error> {
        Ok(ExactMeter {
            meter: Meter::new(levels)?,
            walk: TableWalk::default(),
            compressed: Vec::new(),
            figures: Figures::default(),
        })
    }
}

impl Measure for ExactMeter {
    type Part = Part;

    fn transaction(&mut self, transaction: &mut Extracted<'_>) -> Result<(), Error> {
        if !self.figures.count(transaction)? {
            return Ok(());
        }
        let costs = match transaction.held() {
            Some(events) => {
                self.walk.push(events);
                self.meter.held(events, expanded_too(transaction.offset))?
            }
            None => {
                let walk = &mut self.walk;
                self.meter.read(transaction.inner_size(), |sink| {
                    transaction.read(&mut |events| {
                        walk.push(events);
                        sink(events)
                    })
                })?
            }
        };
        self.compressed.clear();
        for Cost { payload_size: payload, compress, expand } in costs.iter().copied() {
            // What no event can hold stays as it is.
            let size = transaction.compressed_size(payload)?.unwrap_or_else(|| transaction.plain_size());
            self.compressed.push(Compressed { size, payload, compress, expand });
        }
        let tables = self.walk.finish();
        self.figures.count_levels(transaction, &self.compressed, &tables)
    }

    fn without_gtid(&mut self) {
        self.figures.count_left(Ineligible::NoGtid, 0);
    }

    fn take(&mut self) -> Part {
        Part(std::mem::take(&mut self.figures))
    }
}

/// Whether the transaction at this place is expanded again: the same ones in each run.
fn expanded_too(offset: u64) -> bool {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).is_multiple_of(EXPANDED)
}
