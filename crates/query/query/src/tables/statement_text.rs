//! The text of the statement that rows are of, where its server logs it: MySQL with `binlog_rows_query_log_events`, MariaDB with
//! `binlog_annotate_row_events`. It stands before the statement's table maps.

use binlogz_binlog::EventType;
use binlogz_binlog::event::{RowsEvent, RowsFlags};
use binlogz_flow::events::{Event, EventBatch, statement_text};

/// The text of the open statement, as the events of a batch go by.
#[derive(Debug)]
pub(super) struct StatementText {
    text: Option<String>,
    is_wanted: bool,
}

impl StatementText {
    /// The statement that a batch begins in. If it isn't wanted, there is no text.
    pub(super) fn begin(batch: &EventBatch<'_>, is_wanted: bool) -> Self {
        let text = batch.carried().statement.as_deref().filter(|_| is_wanted).map(text_of);
        StatementText { text, is_wanted }
    }

    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Takes the next event.
    pub(super) fn pass(&mut self, event: &Event<'_>) {
        let event_type = event.header.event_type;
        if !self.is_wanted {
            return;
        }
        if event_type.is_gtid() || event_type == EventType::TRANSACTION_PAYLOAD {
            self.text = None;
        } else if let Some(text) = statement_text(event_type, event.body) {
            self.text = Some(text_of(&text));
        }
    }

    /// Takes rows, after they were made.
    pub(super) fn end(&mut self, rows: &RowsEvent<'_>) {
        if rows.flags.contains(RowsFlags::STMT_END) {
            self.text = None;
        }
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
