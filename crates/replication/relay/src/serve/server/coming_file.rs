//! A client that asks for a file after the last one: it learnt the name before the relay has the file, or the name is wrong.
//!
//! ```text
//! the stored log ends with a rotate    the source has the file, and it will be here: a crash between the rotate event,
//!                                      which was sent, and the file's entry in the index leaves the log like this
//! the source has the file              it will be here: the client followed the source itself before
//! the source lacks it                  refused, as by the source
//! ```

use std::time::Instant;

use binlogz_relay_log::{Form, FoundFile, LineageLog};
use binlogz_store::FileNumber;

use super::dump::KnownClient;
use crate::error::{Error, Result};
use crate::receive::questions::Reach;
use crate::serve::sending::sender::{AHEAD_MAX, TICK, broken};

/// Whether a file will be here.
enum FileArrival {
    /// How that is known.
    Yes(&'static str),
    No,
    /// Why it isn't known.
    Unknown(String),
}

impl KnownClient {
    /// Waits for a file that is not here yet.
    ///
    /// # Errors
    ///
    /// The file will or may be here, but isn't within [`AHEAD_MAX`]; the client may ask again.
    pub(super) fn coming_file(
        &self,
        kept: &LineageLog,
        (name, form, number): (&str, Form, FileNumber),
        non_blocking: bool,
    ) -> Result<FoundFile> {
        let until = Instant::now() + AHEAD_MAX;
        let mut why = String::new();
        let mut is_coming = false;
        loop {
            let ends = kept.store.positions();
            match self.forms(kept).find(name)? {
                None | Some((.., FoundFile::None)) => {}
                Some((.., found)) => return Ok(found),
            }
            if kept.is_abandoned() || kept.is_retired() {
                // When the client reconnects, its name is looked for in the log that is served then.
                return Err(broken(std::io::Error::other(
                    "the source's log was reset, or another one follows it",
                )));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Ahead(format!("{name} is not here after {AHEAD_MAX:?}: {why}")));
            }
            // Asked too late it would say only that there was no time.
            if !is_coming && (why.is_empty() || left > TICK) {
                match self.is_coming(kept, (name, form, number), non_blocking, until)? {
                    // The file may have become durable in the meantime.
                    FileArrival::No if kept.store.positions() == ends => return Ok(FoundFile::None),
                    FileArrival::No => continue,
                    FileArrival::Yes(reason) => (is_coming, why) = (true, reason.to_owned()),
                    FileArrival::Unknown(reason) => why = reason,
                }
            }
            kept.store.wait_durable_beyond(ends.map(|ends| ends.durable), TICK.min(left));
        }
    }

    fn is_coming(
        &self,
        kept: &LineageLog,
        (name, form, number): (&str, Form, FileNumber),
        non_blocking: bool,
        until: Instant,
    ) -> Result<FileArrival> {
        let next = kept.next_number(form)?;
        let is_next = next.is_none_or(|next| next == number);
        // The numbers of the other forms follow from the stored bytes: those after the next are the relay's alone to give.
        if next.is_some_and(|next| number < next) || (form != Form::Received && !is_next) {
            return Ok(FileArrival::No);
        }
        let intake = &self.server.statements.intake;
        if intake.servers.all().next().is_none() {
            // Logs that nothing is added to.
            return Ok(FileArrival::No);
        }
        if is_next && kept.ends_with_rotate()? {
            return Ok(FileArrival::Yes("it was named by the rotate event that ends the log"));
        }
        if non_blocking {
            return Ok(FileArrival::No);
        }
        let has = match form {
            Form::Received => intake.source_has_file(kept, name, until),
            Form::Compressed | Form::Uncompressed => intake
                .reach_of_source(kept, form, (name.to_owned(), 0), until)
                .map(|reach| reach == Reach::Further),
        };
        Ok(match has {
            Ok(true) => FileArrival::Yes("the source has it"),
            Ok(false) => FileArrival::No,
            Err(reason) => FileArrival::Unknown(format!("the source can't be asked: {reason}")),
        })
    }
}
