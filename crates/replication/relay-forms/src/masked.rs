//! The form that leaves by a policy: the uncompressed one, masked transaction by transaction.
//!
//! ```text
//! stored transaction ─ tables so far (`logged_tables`) ─ policy ─► masked transaction, as the files BASE-xPOLICY.NNNNNN have it
//! ```
//!
//! Its files are those of the uncompressed form, of which each transaction has another size. So it has names and positions of its own: they are
//! functions of the stored bytes, the policy and its key, a digest of which is in the names. Another policy has other names. The
//! positions that readers have passed are remembered, as long as the relay runs; others are found again from the beginning of the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use binlogz_exits::{ExitPolicy, TransactionMasker};
use binlogz_relay_log::{FormFile, LineageLog, StartOffsets};
use binlogz_store::{FileNumber, LogNames};
use parking_lot::Mutex;

use crate::conversions::DIGEST_SIZE;

/// Characters of the digest in a file's name.
const DIGEST_SHOWN: usize = 8;
/// Bytes of the stored file between positions that are remembered.
const SPACING: u64 = 1 << 20;
/// Files of which positions are remembered.
const FILES_MAX: usize = 32;

/// The form that leaves by a policy.
#[derive(Debug)]
pub struct MaskedForm {
    pub(crate) policy: Arc<ExitPolicy>,
    /// Names the policy and its key.
    digest: String,
    /// Of files, by the number of their log: where transactions begin in the stored file, and in the form.
    places: Mutex<BTreeMap<(u64, FormFile), BTreeMap<u64, u64>>>,
}

impl MaskedForm {
    /// The form of a policy.
    pub fn new(policy: ExitPolicy) -> Self {
        MaskedForm { digest: policy.digest(), policy: Arc::new(policy), places: Mutex::default() }
    }

    /// What names the policy and its key in the names of files.
    pub fn shown_digest(&self) -> &str {
        self.digest.get(..DIGEST_SHOWN).unwrap_or(&self.digest)
    }

    /// The digest, in the keys of blocks.
    pub(crate) fn key(&self) -> [u8; DIGEST_SIZE] {
        let mut key = [0; DIGEST_SIZE];
        key.iter_mut().zip(self.digest.bytes()).for_each(|(to, from)| *to = from);
        key
    }

    /// What the names of its files begin with, for a log.
    pub fn base(&self, kept: &LineageLog) -> String {
        let digest = self.shown_digest();
        match kept.number {
            0 | 1 => format!("{}-x{digest}", kept.base),
            number => format!("{}-x{digest}-{number}", kept.base),
        }
    }

    pub(crate) fn name(&self, kept: &LineageLog, number: FileNumber) -> String {
        LogNames::new(&self.base(kept)).map(|names| names.log(number)).unwrap_or_default()
    }

    pub(crate) fn number(&self, kept: &LineageLog, name: &str) -> Option<FileNumber> {
        LogNames::new(&self.base(kept)).ok()?.number(name)
    }

    /// Remembers where a transaction begins.
    pub(crate) fn note(&self, log: u64, file: FormFile, start: &StartOffsets) {
        let mut places = self.places.lock();
        if places.len() >= FILES_MAX && !places.contains_key(&(log, file)) {
            places.pop_first();
        }
        let of_file = places.entry((log, file)).or_default();
        let before = of_file.range(..=start.stored).next_back().map(|(stored, _)| *stored);
        if before.is_none_or(|before| start.stored >= before + SPACING) {
            of_file.insert(start.stored, start.at);
        }
    }

    /// The last place at or before a position of a file.
    pub(crate) fn before(&self, log: u64, file: FormFile, position: u64) -> Option<StartOffsets> {
        let places = self.places.lock();
        let before = places.get(&(log, file))?.iter().rev().find(|(_, at)| **at <= position)?;
        Some(StartOffsets { stored: *before.0, at: *before.1 })
    }

    /// The last place at or before an offset of the stored file.
    pub(crate) fn before_stored(&self, log: u64, file: FormFile, stored: u64) -> Option<StartOffsets> {
        let places = self.places.lock();
        let before = places.get(&(log, file))?.range(..=stored).next_back()?;
        Some(StartOffsets { stored: *before.0, at: *before.1 })
    }

    /// Forgets the places of a file, of which one turned out to be wrong.
    pub(crate) fn forget(&self, log: u64, file: FormFile) {
        self.places.lock().remove(&(log, file));
    }
}

impl PartialEq for MaskedForm {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for MaskedForm {}

/// A masker, and the place from which it can go on.
#[derive(Debug)]
pub(crate) struct PlacedMasker {
    pub(crate) masker: TransactionMasker,
    pub(crate) next: StartOffsets,
}
