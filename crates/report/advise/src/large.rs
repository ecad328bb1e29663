//! Which transactions are large: of these only the beginning is compressed at every level.

use binlogz_stats::size_class::SizeClass;

/// Transactions from this size up, in bytes, are large: few fit into the time, and they differ.
pub(crate) const LARGE: u64 = 64 << 10;

/// Classes of size without large transactions; the other classes hold only large ones.
pub(crate) const SMALL_CLASSES: usize = {
    let mut class = 0;
    while SizeClass::numbered(class).from < LARGE {
        class += 1;
    }
    assert!(SizeClass::numbered(class).from == LARGE);
    class
};
