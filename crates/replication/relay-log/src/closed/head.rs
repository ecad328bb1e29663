//! The beginning of a plain log file: when it was begun, which transactions came before it, and which it has.

use std::path::Path;

use binlogz_encryption::Keyring;
use binlogz_flow::{FactsUpTo, InOrder, LogFacts};

use super::decrypted;
use crate::error::{Error, Result};

/// The facts of a plain file. Of all but the last one the transactions are needed: they tell what comes next.
pub(crate) fn facts(path: &Path, keyring: Option<&Keyring>, is_last: bool) -> Result<LogFacts> {
    let places = decrypted(path, keyring)?;
    let up_to = if is_last { FactsUpTo::FirstTransaction } else { FactsUpTo::End };
    let name = path.display().to_string();
    let facts = LogFacts::read(name, places.as_ref(), up_to).map_err(|error| match error.offset() {
        Some(_) => Error::Refused(format!("{} {error}", path.display())),
        None => Error::Refused(format!("{}: {error}", path.display())),
    })?;
    if !is_last && facts.gtids.is_none() {
        return Err(Error::DamagedLog(format!(
            "{}: can't be read to its end, so what comes next can't be told; binlogz verify says where it is damaged",
            path.display()
        )));
    }
    Ok(facts)
}

/// A plain file's bytes in order, decrypted.
pub(crate) fn open(path: &Path, keyring: Option<&Keyring>) -> Result<InOrder> {
    Ok(InOrder::new(decrypted(path, keyring)?))
}
