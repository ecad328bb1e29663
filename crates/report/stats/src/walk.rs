//! Goes through the transactions of a batch, for whatever counts them: figures here, unusual changes in `triage`.
//!
//! A transaction may begin before the batch or end after it. What the batch has of such a one is handed back, to be joined with the
//! rest in the order of the log.

use binlogz_binlog::{Boundary, EventType};
use binlogz_flow::Error;
use binlogz_flow::events::{BatchItem, Event, EventBatch};
use binlogz_payload::PayloadSizes;

use crate::transaction::TransactionEnd;

/// Counts transactions as they go by.
pub trait TransactionCounter {
    /// A transaction, or the part of it in a batch.
    type Transaction: Default;

    /// Takes any event, before it is known where it belongs.
    fn event(&mut self, _event: &Event<'_>) {}

    /// Takes an event outside of transactions.
    ///
    /// # Errors
    ///
    /// An event that can't be read.
    fn outside(&mut self, event: &Event<'_>) -> Result<(), Error>;

    /// Begins a transaction with its first event, whose content follows.
    ///
    /// # Errors
    ///
    /// A GTID event that can't be read.
    fn begin(&mut self, event: &Event<'_>) -> Result<Self::Transaction, Error>;

    /// Takes the size of a later event of the log; its content follows.
    fn later(&mut self, transaction: &mut Self::Transaction, event: &Event<'_>);

    /// Takes the content of an event, which may be in a payload.
    ///
    /// # Errors
    ///
    /// An event that can't be read.
    fn content(&mut self, transaction: &mut Self::Transaction, event: &Event<'_>) -> Result<(), Error>;

    /// Ends a payload that had these sizes.
    fn payload_end(&mut self, _transaction: &mut Self::Transaction, _sizes: PayloadSizes) {}

    /// Takes a transaction that began in the batch, and ended in it.
    fn whole(&mut self, transaction: Self::Transaction, ending: &TransactionEnd);
}

/// What a batch has of transactions that aren't whole in it.
#[derive(Debug)]
pub struct CutTransactions<T> {
    /// The end, or the middle, of a transaction that began earlier, and how it ended.
    pub head: Option<(T, Option<TransactionEnd>)>,
    /// A transaction that continues after the batch.
    pub tail: Option<T>,
}

impl<T: Default> CutTransactions<T> {
    /// Goes through the events of a batch. Unreadable bytes fail the batch.
    pub fn of_batch<C>(batch: &mut EventBatch<'_>, counter: &mut C) -> Self
    where
        C: TransactionCounter<Transaction = T>,
    {
        let mut walk = TransactionWalk { counter, open: None, head: None };
        while let Some(item) = batch.next_item() {
            let ends = match item {
                BatchItem::PayloadEnd(end) => {
                    let (counter, transaction) = walk.transaction();
                    counter.payload_end(transaction, end.sizes);
                    Some(EventType::TRANSACTION_PAYLOAD)
                }
                BatchItem::Event(event) => match walk.event(&event) {
                    Ok(ends) => ends,
                    Err(error) => {
                        batch.fail(error);
                        break;
                    }
                },
            };
            if let Some(event_type) = ends {
                walk.end(TransactionEnd::Whole(*batch.transaction().content(), event_type));
            }
        }
        match walk.open {
            Some((transaction, false)) => CutTransactions { head: walk.head, tail: Some(transaction) },
            Some((transaction, true)) => CutTransactions { head: Some((transaction, None)), tail: None },
            None => CutTransactions { head: walk.head, tail: None },
        }
    }
}

/// The transactions of a batch as they go by.
struct TransactionWalk<'c, C: TransactionCounter> {
    counter: &'c mut C,
    /// The open transaction, and whether it began before the batch.
    open: Option<(C::Transaction, bool)>,
    head: Option<(C::Transaction, Option<TransactionEnd>)>,
}

impl<C: TransactionCounter> TransactionWalk<'_, C> {
    /// The open transaction: one that began before the batch, if none began in it.
    #[inline]
    fn transaction(&mut self) -> (&mut C, &mut C::Transaction) {
        let (transaction, _) = self.open.get_or_insert_with(|| (C::Transaction::default(), true));
        (self.counter, transaction)
    }

    /// Takes an event and returns its type if it ends a transaction.
    #[inline]
    fn event(&mut self, event: &Event<'_>) -> Result<Option<EventType>, Error> {
        self.counter.event(event);
        if event.is_inside_payload() {
            let (counter, transaction) = self.transaction();
            return counter.content(transaction, event).map(|()| None);
        }
        match event.placement.boundary {
            Boundary::Outside => return self.counter.outside(event).map(|()| None),
            Boundary::Begin | Boundary::Single => self.begin(event)?,
            Boundary::BeginAgain => {
                self.end(TransactionEnd::CutOff);
                self.begin(event)?;
            }
            Boundary::Inside | Boundary::End => {
                let (counter, transaction) = self.transaction();
                counter.later(transaction, event);
            }
        }
        let (counter, transaction) = self.transaction();
        counter.content(transaction, event)?;
        Ok(event.ends_transaction().then_some(event.header.event_type))
    }

    fn begin(&mut self, event: &Event<'_>) -> Result<(), Error> {
        self.open = Some((self.counter.begin(event)?, false));
        Ok(())
    }

    /// Ends the open transaction.
    fn end(&mut self, ending: TransactionEnd) {
        match self.open.take() {
            Some((transaction, false)) => self.counter.whole(transaction, &ending),
            Some((transaction, true)) => self.head = Some((transaction, Some(ending))),
            None => self.head = Some((C::Transaction::default(), Some(ending))),
        }
    }
}
