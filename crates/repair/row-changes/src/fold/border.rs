//! Why a transaction can't be folded.

/// The reasons, from the most frequent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FoldBorder {
    Statement,
    RolledBack,
    Xa,
    WhileXa,
    Lacking,
    Differences,
    Cascade,
    UnknownKeys,
    OtherTable,
    PlainEngine,
    Few,
}

const ALL: [FoldBorder; 11] = [
    FoldBorder::Statement,
    FoldBorder::RolledBack,
    FoldBorder::Xa,
    FoldBorder::WhileXa,
    FoldBorder::Lacking,
    FoldBorder::Differences,
    FoldBorder::Cascade,
    FoldBorder::UnknownKeys,
    FoldBorder::OtherTable,
    FoldBorder::PlainEngine,
    FoldBorder::Few,
];

impl FoldBorder {
    /// The number by which records name it.
    pub(super) fn code(self) -> u8 {
        self as u8
    }

    pub(super) fn of_code(code: u8) -> Option<Self> {
        ALL.into_iter().find(|border| border.code() == code)
    }

    fn words(self) -> &'static str {
        match self {
            FoldBorder::Statement => "with statements as text, DDL among them",
            FoldBorder::RolledBack => "with changes that were rolled back",
            FoldBorder::Xa => "of XA",
            FoldBorder::WhileXa => "while an XA transaction was prepared",
            FoldBorder::Lacking => "with images that lack columns (binlog_row_image=FULL writes all)",
            FoldBorder::Differences => {
                "with JSON documents as differences (binlog_row_value_options=PARTIAL_JSON)"
            }
            FoldBorder::Cascade => "on account of which foreign keys changed rows that are not in the log",
            FoldBorder::UnknownKeys => {
                "on account of which foreign keys may have changed rows that are not in the log (--schema tells)"
            }
            FoldBorder::OtherTable => "in which a table map changes",
            FoldBorder::PlainEngine => "of tables whose engine has no transactions",
            FoldBorder::Few => "that stand alone or in pairs between others",
        }
    }
}

/// Transactions that went through as they are, for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BorderCount {
    pub(super) border: FoldBorder,
    /// How many.
    pub count: u64,
    /// The first: `LOG at OFFSET`, and what it has.
    pub first: String,
}

impl BorderCount {
    /// The reason, after "transactions".
    pub fn reason(&self) -> &'static str {
        self.border.words()
    }

    /// Whether foreign keys may have changed rows with these transactions that no log has.
    pub fn may_lack_rows(&self) -> bool {
        self.border == FoldBorder::UnknownKeys
    }

    /// Counts one more.
    pub(super) fn add(counts: &mut Vec<BorderCount>, border: FoldBorder, place: impl FnOnce() -> String) {
        match counts.iter_mut().find(|count| count.border == border) {
            Some(known) => known.count += 1,
            None => {
                counts.push(BorderCount { border, count: 1, first: place() });
                counts.sort_by_key(|count| count.border);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_name_reasons() {
        for border in ALL {
            assert_eq!(FoldBorder::of_code(border.code()), Some(border));
        }
        assert_eq!(FoldBorder::of_code(ALL.len() as u8), None);
    }
}
