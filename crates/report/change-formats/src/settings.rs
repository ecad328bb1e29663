//! The settings of a format, by the names that its program has for them.

use binlogz_schema::TablesOfLogs;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeFormat {
    /// Debezium's, as its JSON converter writes it without schemas.
    Debezium,
    /// Maxwell's.
    Maxwell,
    /// canal's flat messages.
    Canal,
}

/// How Debezium writes DECIMAL (`decimal.handling.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Decimals {
    /// The unscaled number's bytes in base64.
    #[default]
    Precise,
    /// A string.
    String,
    /// A number of limited precision.
    Double,
}

/// How Debezium writes BIGINT UNSIGNED (`bigint.unsigned.handling.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BigintUnsigned {
    /// A signed number: from 2^63 on it is negative.
    #[default]
    Long,
    /// As a DECIMAL with [`Decimals::Precise`].
    Precise,
}

/// The settings of row changes: the format, and the options of the program that it comes from.
pub struct ChangeSettings<'s> {
    /// The format.
    pub format: ChangeFormat,
    /// Debezium's `topic.prefix`.
    pub topic_prefix: String,
    /// Debezium's DECIMAL.
    pub decimals: Decimals,
    /// Debezium's BIGINT UNSIGNED.
    pub bigint_unsigned: BigintUnsigned,
    /// Debezium's metadata of transactions (`provide.transaction.metadata`).
    pub transaction_metadata: bool,
    /// Each line begins with the message's key and a tab.
    pub with_key: bool,
    /// What is known of tables that the log may lack.
    pub tables: &'s TablesOfLogs,
}

impl std::fmt::Debug for ChangeSettings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("format", &self.format).finish_non_exhaustive()
    }
}
