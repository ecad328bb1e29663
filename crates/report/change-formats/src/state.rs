//! State that later lines need from earlier events, from batch to batch: the transaction they are in, the selection so far.

use binlogz_binlog::EventType;
use binlogz_flow::Error;
use binlogz_flow::events::{BatchItem, Event};

use binlogz_print::LogBounds;
use binlogz_print::jsonl::JsonState;
use binlogz_print::line_printer::LineState;
use binlogz_print::met::MetRequests;
use binlogz_schema::TablesSoFar;

/// The state between two events.
#[derive(Debug, Clone, Default)]
pub struct ChangeState {
    pub(crate) log: JsonState,
    /// Inside a payload, whose transaction has ended as far as the log is concerned.
    in_payload: bool,
}

impl ChangeState {
    /// Whether no transaction is open.
    pub(crate) fn is_between_transactions(&self) -> bool {
        !self.in_payload && !self.log.is_in_transaction()
    }

    /// Takes the next item of the log; the event if it is one.
    ///
    /// # Errors
    ///
    /// An event that can't be read.
    pub(crate) fn pass<'a>(
        &mut self,
        item: BatchItem<'a>,
        positions: LogBounds,
    ) -> Result<Option<Event<'a>>, Error> {
        match item {
            BatchItem::PayloadEnd(_) => {
                self.in_payload = false;
                Ok(None)
            }
            BatchItem::Event(event) => {
                self.in_payload |= event.header.event_type == EventType::TRANSACTION_PAYLOAD;
                self.log.pass(&event, positions).map_err(|error| event.error(error))?;
                Ok(Some(event))
            }
        }
    }
}

impl LineState for ChangeState {
    fn begin_log(&mut self, name: &str) {
        self.log.begin_log(name);
        self.in_payload = false;
    }

    fn met(&self) -> MetRequests {
        self.log.met()
    }

    fn has_ended(&self) -> bool {
        self.log.has_ended()
    }

    fn tables(&self) -> &TablesSoFar {
        self.log.tables()
    }
}
