//! Masks a transaction of a file, on its way to the sink.

use std::io::{self, Read};

use binlogz_exits::{ExitError, TransactionMasker};
use binlogz_flow::Error as FlowError;
use binlogz_payload::{Error as PayloadError, Spool};
use binlogz_relay_log::{Error, EventGroup, Result, StartOffsets};

use crate::masked::{MaskedForm, PlacedMasker};
use crate::translate::{FormSink, Translator};

/// Bytes that are copied at a time.
const COPY_SIZE: usize = 64 << 10;

impl<W: FormSink> Translator<'_, W> {
    /// Masks a transaction, or an event between two.
    pub(crate) fn mask(&mut self, exits: &MaskedForm, group: &EventGroup) -> Result<()> {
        let here = StartOffsets { stored: group.begin, at: self.out.offset() };
        // Not put back after an error.
        let mut masker = match self.masker.take().filter(|placed| placed.next == here) {
            Some(placed) => placed.masker,
            None => self.masker_at(exits, &here)?,
        };
        let forms = self.forms;
        let converting = forms.conversions.borrow();
        let events = forms.kept.store.reader(self.part.of.file, group.begin)?.take(group.size());
        let spool = Spool::new(&forms.conversions.work, Vec::new());
        let masked = masker.mask(events, group.begin, self.part.clock, spool);
        drop(converting);
        let masked = masked.map_err(|error| unmasked(error, &self.name()))?;
        self.copy_masked(&masked)?;
        let next = StartOffsets { stored: group.end, at: self.out.offset() };
        self.masker = Some(PlacedMasker { masker, next });
        Ok(())
    }

    fn masker_at(&self, exits: &MaskedForm, here: &StartOffsets) -> Result<TransactionMasker> {
        let forms = self.forms;
        let tables = forms.conversions.tables.at(forms.kept, self.part.of.file, here.stored)?;
        let context = self.part.stored_head.context();
        TransactionMasker::new(&exits.policy, tables, context, here.at)
            .map_err(|error| unmasked(error, &self.name()))
    }

    fn copy_masked(&mut self, masked: &Spool) -> Result<()> {
        if let Some(bytes) = masked.memory(0..masked.size()) {
            return Ok(self.out.as_is(bytes)?);
        }
        let mut reader = masked.reader(0..masked.size());
        self.buffer.resize(COPY_SIZE, 0);
        loop {
            match reader.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => self.out.as_is(self.buffer.get(..count).unwrap_or_default())?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::io("read a temporary file")(source)),
            }
        }
    }

    /// Remembers the tables as they are here, for readers that go on from here.
    pub(crate) fn note_tables(&self) {
        if let Some(PlacedMasker { masker, next }) = &self.masker {
            let forms = self.forms;
            forms.conversions.tables.note(forms.kept.id, (self.part.of.file, next.stored), masker.tables());
        }
    }
}

/// Why a transaction of a file can't leave.
fn unmasked(error: ExitError, file: &str) -> Error {
    match error {
        ExitError::Refused { offset, text } => Error::Refused(format!(
            "the transaction whose stored bytes begin at {offset}, for {file}, may not leave by the account's policy: {text}"
        )),
        ExitError::Event(error) => Error::Binlog(error),
        ExitError::Spill(source) => Error::io("use a temporary file")(source),
        ExitError::Log(FlowError::Input(PayloadError::Io(error))) => Error::of_stored(error),
        ExitError::Log(FlowError::Input(error) | FlowError::Output(error)) => Error::Payload(error),
        // Neither the pass of it nor a later kind of error tells of values.
        other => Error::Refused(format!("{file}: {other}")),
    }
}
