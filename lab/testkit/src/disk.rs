//! A simulated disk under a store. It fails at a chosen operation. After a crash it has everything synced, and an
//! arbitrary part of the rest.
//!
//! ```text
//! write, set_size   seen by readers at once; survives a crash by sectors of 512 bytes: each may be there, be
//!                   missing, or be torn, whatever was written before or after it
//! sync              what was written before survives; when it fails, never again
//! create, rename,   seen at once; each may survive or not
//! remove
//! sync_names        they survive
//! ```
//!
//! A fault is planned in one of two ways: for one operation that changes something or syncs
//! ([`SimulatedDisk::fail_at`]), or for any call, reads and opens too, once or until it is cleared
//! ([`SimulatedDisk::trouble_at`]).
//!
//! Everything random comes from the seed given to [`SimulatedDisk::crash`].

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use binlogz_store::storage::{Storage, StorageFile};
use parking_lot::{Mutex, MutexGuard};

use crate::random::Random;

/// Bytes that a disk writes whole or not at all, if it is not torn.
const SECTOR_SIZE: usize = 512;

/// The fault at the chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// The system stops within it: everything fails until [`SimulatedDisk::crash`].
    Crash,
    /// It fails with EIO; of a write, some bytes may be there.
    Eio,
    /// It fails with ENOSPC; of a write, some bytes may be there.
    Enospc,
    /// A sync reports success, and does nothing. (Other operations work.)
    LostSync,
    /// No descriptor is left: nothing can be opened, created or listed. (Other calls work.)
    Emfile,
    /// A write ends before its last byte, with an error. (Other calls work.)
    ShortWrite,
}

/// The kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// Listing and opening.
    Open,
    Create,
    /// Reading, and asking for a size.
    Read,
    Write,
    SetSize,
    Sync,
    /// Renaming and removing.
    Name,
    SyncNames,
}

impl DiskFault {
    /// Whether such a call can meet it.
    fn meets(self, call: Call) -> bool {
        match self {
            DiskFault::Eio => true,
            DiskFault::Enospc => !matches!(call, Call::Open | Call::Read | Call::SetSize),
            DiskFault::Emfile => matches!(call, Call::Open | Call::Create),
            DiskFault::ShortWrite => call == Call::Write,
            DiskFault::Crash | DiskFault::LostSync => false,
        }
    }

    fn error(self) -> io::Error {
        match self {
            DiskFault::Enospc => io::Error::from_raw_os_error(28),
            DiskFault::Emfile => io::Error::from_raw_os_error(24),
            DiskFault::ShortWrite => io::ErrorKind::WriteZero.into(),
            DiskFault::Eio | DiskFault::Crash | DiskFault::LostSync => eio(),
        }
    }
}

/// Calls that fail.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    from: u64,
    fault: DiskFault,
    /// Until it is cured; else once.
    lasts: bool,
    met: bool,
}

/// A disk. Its clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct SimulatedDisk {
    state: Arc<Mutex<DiskState>>,
}

#[derive(Debug, Default)]
struct DiskState {
    files: Vec<File>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending_names: Vec<NameChange>,
    operations: u64,
    plan: Option<(u64, DiskFault)>,
    stopped: bool,
    /// Raised by each crash: files opened before are gone.
    life: u64,
    capacity: Option<u64>,
    calls: u64,
    trouble: Option<Trouble>,
}

#[derive(Debug, Default)]
struct File {
    seen: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    SetSize(usize),
}

#[derive(Clone, Debug)]
enum NameChange {
    Create(String, usize),
    Rename(String, String, usize),
    Remove(String),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::SetSize(size) => bytes.resize(*size, 0),
            Change::Write(offset, written) => {
                let end = offset + written.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*offset..end].copy_from_slice(written);
            }
        }
    }

    /// The part of it that a crash leaves.
    fn survivors(&self, kept_of_8: usize, random: &mut Random) -> Vec<Change> {
        let Change::Write(offset, written) = self else {
            return if random.below(8) < kept_of_8 { vec![self.clone()] } else { Vec::new() };
        };
        let mut parts = Vec::new();
        let mut start = 0;
        while start < written.len() {
            let to_boundary = SECTOR_SIZE - (offset + start) % SECTOR_SIZE;
            let end = (start + to_boundary).min(written.len());
            if random.below(8) < kept_of_8 {
                let torn = random.below(16) == 0;
                let end = if torn { start + random.below(end - start + 1) } else { end };
                parts.push(Change::Write(offset + start, written[start..end].to_vec()));
            }
            start = end.max(start + to_boundary.min(written.len() - start));
        }
        parts
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            NameChange::Create(name, file) => drop(names.insert(name.clone(), *file)),
            NameChange::Rename(from, to, file) => {
                names.remove(from);
                names.insert(to.clone(), *file);
            }
            NameChange::Remove(name) => drop(names.remove(name)),
        }
    }
}

impl SimulatedDisk {
    /// An empty disk that works.
    pub fn new() -> SimulatedDisk {
        SimulatedDisk::default()
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock()
    }

    /// Operations so far that change something or sync.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Lets the operation with this number fail (the first is 0).
    pub fn fail_at(&self, operation: u64, fault: DiskFault) {
        self.state().plan = Some((operation, fault));
    }

    /// Calls so far, reads and opens too.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// The first call from this number on (the first is 0) that the fault applies to fails; if it `lasts`,
    /// all of them do, until [`SimulatedDisk::cure`].
    pub fn trouble_at(&self, call: u64, fault: DiskFault, lasts: bool) {
        self.state().trouble = Some(Trouble { from: call, fault, lasts, met: false });
    }

    /// Whether the planned trouble was met.
    pub fn is_troubled(&self) -> bool {
        self.state().trouble.is_some_and(|trouble| trouble.met)
    }

    /// Whether trouble is planned that was not met, or lasts.
    pub fn has_plan(&self) -> bool {
        self.state().trouble.is_some()
    }

    /// The trouble is over.
    pub fn cure(&self) {
        self.state().trouble = None;
    }

    /// Whether it stopped at a [`DiskFault::Crash`].
    pub fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// The most bytes that all files together may have.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// The power fails, and comes back: no fault is planned any more.
    pub fn crash(&self, random: &mut Random) {
        let mut state = self.state();
        // From nothing unsynced to all of it.
        let kept_of_8 = [0, 3, 6, 8][random.below(4)];
        for file in &mut state.files {
            for change in std::mem::take(&mut file.pending) {
                for part in change.survivors(kept_of_8, random) {
                    part.apply(&mut file.durable);
                }
            }
            file.seen = file.durable.clone();
        }
        for change in std::mem::take(&mut state.pending_names) {
            if random.below(8) < kept_of_8 {
                change.apply(&mut state.durable_names);
            }
        }
        state.names = state.durable_names.clone();
        (state.plan, state.trouble, state.stopped) = (None, None, false);
        state.life += 1;
    }

    /// Only this process ends: everything it wrote is there, files opened before are gone, no fault is
    /// planned.
    pub fn reopen(&self) {
        let mut state = self.state();
        (state.plan, state.stopped) = (None, false);
        state.life += 1;
    }
}

fn eio() -> io::Error {
    io::Error::from_raw_os_error(5)
}

impl DiskState {
    /// Counts an operation; the fault planned for it.
    fn step(&mut self) -> io::Result<Option<DiskFault>> {
        if self.stopped {
            return Err(eio());
        }
        let this = self.operations;
        self.operations += 1;
        let fault = self.plan.filter(|(at, _)| *at == this).map(|(_, fault)| fault);
        self.stopped = fault == Some(DiskFault::Crash);
        Ok(fault)
    }

    /// Counts a call; the trouble that it meets.
    fn call(&mut self, call: Call) -> Option<DiskFault> {
        let this = self.calls;
        self.calls += 1;
        let trouble = self.trouble.as_mut()?;
        let meets = this >= trouble.from && (trouble.lasts || !trouble.met) && trouble.fault.meets(call);
        trouble.met |= meets;
        meets.then_some(trouble.fault)
    }

    /// Counts a call that does nothing when it meets trouble; errs then.
    fn call_whole(&mut self, call: Call) -> io::Result<()> {
        self.call(call).map_or(Ok(()), |fault| Err(fault.error()))
    }

    /// For operations that happen whole or not at all.
    fn step_whole(&mut self) -> io::Result<()> {
        match self.step()? {
            None | Some(DiskFault::LostSync) => Ok(()),
            Some(DiskFault::Enospc) => Err(io::ErrorKind::StorageFull.into()),
            Some(_) => Err(eio()),
        }
    }

    fn change(&mut self, file: usize, change: Change) {
        change.apply(&mut self.files[file].seen);
        self.files[file].pending.push(change);
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    fn named(&self, name: &str) -> io::Result<usize> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no file {name}"));
        self.names.get(name).copied().ok_or_else(missing)
    }

    fn is_full_with(&self, file: usize, end: usize) -> bool {
        let held: usize = self.names.values().map(|file| self.files[*file].seen.len()).sum();
        let more = end.saturating_sub(self.files[file].seen.len());
        self.capacity.is_some_and(|capacity| more > 0 && (held + more) as u64 > capacity)
    }
}

impl Storage for SimulatedDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.call_whole(Call::Open)?;
        if state.stopped { Err(eio()) } else { Ok(state.names.keys().cloned().collect()) }
    }

    fn open(&self, name: &str, create: bool) -> io::Result<Arc<dyn StorageFile>> {
        let mut state = self.state();
        state.call_whole(if create { Call::Create } else { Call::Open })?;
        let file = if create {
            state.step_whole()?;
            if state.names.contains_key(name) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            state.files.push(File::default());
            let file = state.files.len() - 1;
            state.change_name(NameChange::Create(name.to_owned(), file));
            file
        } else {
            state.named(name)?
        };
        Ok(Arc::new(OpenFile { disk: self.clone(), file, life: state.life }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call_whole(Call::Name)?;
        state.step_whole()?;
        let file = state.named(from)?;
        state.change_name(NameChange::Rename(from.to_owned(), to.to_owned(), file));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call_whole(Call::Name)?;
        state.step_whole()?;
        state.named(name)?;
        state.change_name(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.state();
        state.call_whole(Call::SyncNames)?;
        match state.step()? {
            None => {
                for change in std::mem::take(&mut state.pending_names) {
                    change.apply(&mut state.durable_names);
                }
                Ok(())
            }
            Some(DiskFault::LostSync) => Ok(()),
            Some(_) => Err(eio()),
        }
    }
}

#[derive(Debug)]
struct OpenFile {
    disk: SimulatedDisk,
    file: usize,
    life: u64,
}

impl OpenFile {
    fn state(&self) -> io::Result<MutexGuard<'_, DiskState>> {
        let state = self.disk.state();
        if state.stopped || state.life != self.life { Err(eio()) } else { Ok(state) }
    }
}

impl StorageFile for OpenFile {
    fn size(&self) -> io::Result<u64> {
        let mut state = self.state()?;
        state.call_whole(Call::Read)?;
        Ok(state.files[self.file].seen.len() as u64)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state()?;
        state.call_whole(Call::Read)?;
        let rest = state.files[self.file].seen.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state()?;
        if let Some(fault) = state.call(Call::Write) {
            let there = match fault {
                DiskFault::ShortWrite => bytes.len().saturating_sub(1),
                _ => bytes.len() / 2,
            };
            state.change(self.file, Change::Write(offset as usize, bytes[..there].to_vec()));
            return Err(fault.error());
        }
        let fault = state.step()?;
        let full = state.is_full_with(self.file, offset as usize + bytes.len());
        if !full && matches!(fault, None | Some(DiskFault::LostSync)) {
            state.change(self.file, Change::Write(offset as usize, bytes.to_vec()));
            return Ok(());
        }
        let part = bytes[..bytes.len() / 2].to_vec();
        state.change(self.file, Change::Write(offset as usize, part));
        Err(if full || fault == Some(DiskFault::Enospc) { io::ErrorKind::StorageFull.into() } else { eio() })
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        let mut state = self.state()?;
        state.call_whole(Call::SetSize)?;
        state.step_whole()?;
        state.change(self.file, Change::SetSize(size as usize));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state()?;
        if let Some(fault) = state.call(Call::Sync) {
            state.files[self.file].pending.clear();
            return Err(fault.error());
        }
        let fault = state.step()?;
        let file = &mut state.files[self.file];
        match fault {
            None => {
                for change in std::mem::take(&mut file.pending) {
                    change.apply(&mut file.durable);
                }
                Ok(())
            }
            Some(DiskFault::LostSync) => Ok(()),
            Some(DiskFault::Crash) => Err(eio()),
            Some(_) => {
                // The system drops what it could not write: readers still see it, the disk never gets it.
                file.pending.clear();
                Err(eio())
            }
        }
    }
}
