//! The relay's whole storing path on a simulated disk that loses unsynced writes, in any part and order: log, its index,
//! index of positions, cuts and numbers of uncompressed files, pinned forms, the relay's uuid. BINLOGZ_CRASHES=N does N
//! random runs.
//!
//! A run is several lives of a relay, each ended by a crash at some operation of the disk. After each crash, everything
//! acknowledged or shown to a replica is there, without a hole; the relay asks the source for exactly what follows; and
//! each name still has its former contents. In the end the log is the source's, in every form and from every place of the
//! index.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use binlogz_binlog::gtid::ServerUuid;
use binlogz_binlog::{EventHeader, MAGIC};
use binlogz_payload::CompressionLevel;
use binlogz_relay_forms::{FormSink, Forms, Translator};
use binlogz_relay_log::{Disk, Form, FormFile, FoundFile, LineageLog};
use binlogz_source::ConnectOptions;
use binlogz_store::{FileNumber, Storage};
use binlogz_testkit::builder::UUID;
use binlogz_testkit::disk::{DiskFault, SimulatedDisk};
use binlogz_testkit::mutate;
use binlogz_testkit::random::Random;

use super::open_source;
use super::simulated::{BASE, Beside, Connection, SourceLog, gtids};

use crate::error::{Error, Result};
use crate::options::SourceOptions;
use crate::receive::receiver::receiving::ReceivedBytes;
use crate::receive::receiver::{LogEnd, receive_all, start};
use crate::receive::start::StartAt;
use crate::receive::storing::{self, StoredForm};
use crate::source::RelaySource;

/// Random runs in `make test`; scripts/soak/relay.sh does 1,000 and more.
const CRASHES: u64 = 100;
const LIVES: usize = 4;

/// One disk without folders: no other server is followed here.
#[derive(Debug, Clone)]
pub(crate) struct OneDisk(pub(crate) SimulatedDisk);

impl Disk for OneDisk {
    fn has(&self, _: &str) -> bool {
        false
    }

    fn take(&self, _: Option<&str>) -> binlogz_relay_log::Result<Arc<dyn Storage>> {
        Ok(Arc::new(self.0.clone()))
    }
}

/// Facts that others know of the relay, which it can't take back.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The last transaction that was acknowledged or shown.
    promised: u64,
    /// The last one that was sent to it.
    sent: u64,
    uuid: Option<ServerUuid>,
    pins: BTreeMap<String, Form>,
    /// The bytes shown of each file of a form, by its name.
    shown: BTreeMap<String, Vec<u8>>,
    /// Files that were purged, as they were stored.
    purged: BTreeMap<FileNumber, Vec<u8>>,
}

impl Known {
    /// The last transaction that was acknowledged or shown.
    pub(super) fn promised(&self) -> u64 {
        self.promised
    }

    /// Shows so much of a file, without its format description; some of it, or some more, may have been shown before.
    fn show(&mut self, name: String, bytes: Vec<u8>) {
        let shown = self.shown.entry(name.clone()).or_default();
        let same = shown.len().min(bytes.len());
        assert!(shown[..same] == bytes[..same], "{name} has changed");
        if bytes.len() > shown.len() {
            *shown = bytes;
        }
    }
}

pub(crate) fn options(random: &mut Random) -> SourceOptions {
    let level = CompressionLevel::new([1, 3][random.below(2)]).unwrap();
    SourceOptions {
        servers: vec![ConnectOptions::new("binlogz")],
        storing: [StoredForm::Received, StoredForm::Compressed(level)][random.below(2)],
        uncompressed_file_size: [4000, 1 << 20][random.below(2)],
        start: StartAt::Earliest,
        semi_sync: true,
        ..SourceOptions::new("simulated".into())
    }
}

/// The work of the relay's other threads, and of its clients, while it receives.
struct Others<'a> {
    relay: &'a RelaySource,
    kept: &'a LineageLog,
    known: &'a mut Known,
}

impl Beside for Others<'_> {
    fn between(&mut self, random: &mut Random) {
        // A disk that has stopped says no to all of this; the receiver is told so as well.
        let _ = match random.below(40) {
            0..=7 => self.relay.intake.sync(),
            8..=10 => self.serve(random),
            11 => self.pin(random),
            12 => self.purge(),
            13 => self.put_back(),
            _ => Ok(()),
        };
    }

    fn sent(&mut self, gno: u64) {
        self.known.sent = self.known.sent.max(gno);
    }

    fn acknowledged(&mut self, gno: u64) {
        self.known.promised = self.known.promised.max(gno);
    }
}

impl Others<'_> {
    /// A replica goes through a file and sees all that it is shown.
    fn serve(&mut self, random: &mut Random) -> Result<()> {
        let logs = self.kept.store.logs()?;
        let Some(log) = logs.get(random.below(logs.len().max(1))) else { return Ok(()) };
        let form = Form::ALL[random.below(3)];
        for of in self.kept.parts_of(form, log.number)? {
            let mut file =
                Translator::new(self.relay.intake.conversions.of(self.kept), form, of, Bytes::default())?;
            file.put_front()?;
            let mut last = 0;
            while let Some(group) = file.walker().next_group()? {
                if file.is_cut(&group)? {
                    file.put_end(&group)?;
                    break;
                }
                file.put(&group)?;
                last = last.max(group.gtid.map_or(0, |gtid| gtid.gno()));
            }
            file.finish_file();
            self.known.promised = self.known.promised.max(last);
            let bytes = std::mem::take(&mut file.sink()?.0);
            self.known.show(file.name(), bytes);
        }
        Ok(())
    }

    fn pin(&mut self, random: &mut Random) -> Result<()> {
        let who = random.below(20).to_string();
        let form = self.relay.server.pins.form("repl", &who, Form::ALL[random.below(3)])?;
        let pinned = self.known.pins.entry(who.clone()).or_insert(form);
        assert_eq!(*pinned, form, "client {who} was moved to another form");
        Ok(())
    }

    fn purge(&mut self) -> Result<()> {
        let logs = self.kept.store.logs()?;
        let [first, second, ..] = logs.as_slice() else { return Ok(()) };
        let mut bytes = Vec::new();
        let mut reader = self.kept.store.reader(first.number, 0)?;
        std::io::copy(&mut reader, &mut bytes).map_err(Error::io("read"))?;
        self.known.purged.insert(first.number, bytes);
        self.kept.purge_before(second.number)?;
        Ok(())
    }

    fn put_back(&mut self) -> Result<()> {
        let Some(first) = self.kept.store.logs()?.first().map(|log| log.number) else { return Ok(()) };
        let Some(bytes) = self.known.purged.get(&FileNumber(first.0 - 1)) else { return Ok(()) };
        self.kept.store.put_back(FileNumber(first.0 - 1), &mut |out| out.write_all(bytes))?;
        Ok(())
    }
}

/// Opens the files that the crash left, and checks the promises about them. `None`: the disk stopped meanwhile.
pub(super) fn open(
    disk: &SimulatedDisk,
    random: &mut Random,
    known: &mut Known,
    what: &str,
) -> Option<RelaySource> {
    let relay = open_source(options(random), Arc::new(OneDisk(disk.clone())));
    let relay = match relay {
        Ok(relay) => relay,
        Err(_) if disk.is_stopped() => return None,
        Err(error) => panic!("{what}: {error}"),
    };
    let held = relay.intake.written_gtids();
    let last = (0..=known.sent)
        .rev()
        .find(|last| gtids(*last) == held)
        .unwrap_or_else(|| panic!("{what}: a hole in {held}, or what was never sent: {known:?}"));
    assert!(last >= known.promised, "{what}: {} was promised, the log ends with {last}", known.promised);
    // Now a replica may see it.
    known.promised = last;
    known.sent = last;
    assert_eq!(*known.uuid.get_or_insert(relay.intake.uuid), relay.intake.uuid, "{what}: another uuid");
    for (who, form) in &known.pins {
        let other = Form::ALL[(*form as usize + 1) % 3];
        assert_eq!(relay.server.pins.form("repl", who, other).unwrap(), *form, "{what}: client {who}");
    }
    Some(relay)
}

/// Connects, and receives until the connection breaks; an error is the disk's.
pub(super) fn receive(
    relay: &RelaySource,
    source: &SourceLog,
    random: &mut Random,
    known: &mut Known,
    pieces: usize,
) -> Result<()> {
    let kept = relay.intake.keep(BASE, UUID, false)?;
    relay.intake.sync()?;
    let end = LogEnd::of(&relay.intake, &kept)?;
    let start = start(&kept, true, end.as_ref(), String::new());
    let mut others = Others { relay, kept: &kept, known };
    let log = Connection::new(source, &start, random, &mut others, pieces);
    storing::run(&relay.intake, &kept, |batches| {
        receive_all(ReceivedBytes::new(&relay.intake, &kept, batches, end)?, log, UUID, None)
    })
}

/// Takes the bytes of a form.
#[derive(Default)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl FormSink for Bytes {
    fn skip_to(&mut self, _: u64) {}
}

/// A client's view of a file that begins with the transaction at this position of the form, or before it; and
/// where that begins.
pub(super) fn tail(forms: Forms<'_>, form: Form, file: FormFile, position: Option<u64>) -> (u64, Vec<u8>) {
    let mut log = Translator::new(forms, form, file, Bytes::default()).unwrap();
    if let Some(start) = position.and_then(|position| log.before(position)) {
        log.begin_at(&start).unwrap();
    }
    let from = log.offset();
    log.put_front().unwrap();
    while let Some(group) = log.walker().next_group().unwrap() {
        if log.is_cut(&group).unwrap() {
            log.put_end(&group).unwrap();
            break;
        }
        log.put(&group).unwrap();
    }
    log.finish_file();
    (from, std::mem::take(&mut log.sink().unwrap().0))
}

/// How many transactions there are in a file from this place on, where each event must say its place.
fn transactions_in(mut bytes: &[u8], mut at: u64) -> usize {
    let mut count = 0;
    while !bytes.is_empty() {
        let header = EventHeader::decode(bytes).unwrap();
        at += u64::from(header.event_size);
        assert_eq!(u64::from(header.end_log_pos), at);
        count += usize::from(header.event_type.is_gtid());
        bytes = &bytes[header.event_size as usize..];
    }
    count
}

/// The kept log is the source's, and every way into it leads to the same bytes.
pub(super) fn compare(
    relay: &RelaySource,
    source: &SourceLog,
    random: &mut Random,
    known: &mut Known,
    what: &str,
) {
    let kept = relay.intake.lineages.served().unwrap();
    let logs = kept.store.logs().unwrap();
    assert_eq!(logs.len(), source.files.len(), "{what}");
    for (log, file) in logs.iter().zip(&source.files) {
        assert_eq!(log.name, file.name, "{what}");
        for form in Form::ALL {
            let mut transactions = 0;
            for of in kept.parts_of(form, log.number).unwrap() {
                let (head, whole) = tail(relay.intake.conversions.of(&kept), form, of, None);
                transactions += transactions_in(&whole, head);
                if form == Form::Received {
                    let same = whole == file.bytes[head as usize..];
                    assert!(same, "{what}: {} differs from the source's, {} bytes", log.name, whole.len());
                }
                for _ in 0..4 {
                    let position = MAGIC.len() as u64 + random.below(whole.len()) as u64;
                    let (from, rest) = tail(relay.intake.conversions.of(&kept), form, of, Some(position));
                    let same = rest == whole[(from - head) as usize..];
                    assert!(same, "{what}: {} as {} from {from}", log.name, form.name());
                }
                let name = kept.name_of(form, of).unwrap();
                let parsed = kept.names.parse(&name).map(|(form, number)| kept.find(form, number).unwrap());
                assert_eq!(parsed, Some(FoundFile::File(of)), "{what}: {name}");
                known.show(name, whole);
            }
            assert_eq!(transactions, file.transactions(), "{what}: {} as {}", log.name, form.name());
        }
    }
    assert_eq!(kept.durable_gtids(), gtids(source.last()), "{what}");
}

fn run(seed: u64, met: &mut Met) {
    let random = &mut Random::new(seed);
    let large = random.below(4) == 0;
    let source = SourceLog::new(random, large);
    let disk = SimulatedDisk::new();
    let mut known = Known::default();
    for life in 0..LIVES {
        let what = format!("SEED={seed} life {life}");
        disk.fail_at(disk.operations() + random.below(90) as u64, DiskFault::Crash);
        match open(&disk, random, &mut known, &what) {
            None => met.in_recovery += 1,
            Some(relay) => {
                for _ in 0..3 {
                    let pieces = 1 + random.below(120);
                    let received = receive(&relay, &source, random, &mut known, pieces);
                    if disk.is_stopped() {
                        met.while_receiving += 1;
                        break;
                    }
                    received.unwrap_or_else(|error| panic!("{what}: {error}"));
                }
            }
        }
        disk.crash(random);
    }
    let what = format!("SEED={seed} at last");
    let relay = open(&disk, random, &mut known, &what).unwrap();
    met.promised += known.promised;
    receive(&relay, &source, random, &mut known, usize::MAX)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    relay.intake.sync().unwrap();
    let kept = relay.intake.lineages.served().unwrap();
    put_all_back(&relay, &kept, &mut known);
    compare(&relay, &source, random, &mut known, &what);
    met.cuts += known.shown.keys().filter(|name| name.starts_with("binlog-u")).count() as u64;
    met.cuts -= source.files.len() as u64;
}

/// Brings all purged files back.
pub(super) fn put_all_back(relay: &RelaySource, kept: &LineageLog, known: &mut Known) {
    while kept.store.logs().unwrap().first().unwrap().number > FileNumber(1) {
        Others { relay, kept, known }.put_back().unwrap();
    }
}

/// The cases that the runs came across.
#[derive(Debug, Default)]
struct Met {
    in_recovery: u64,
    while_receiving: u64,
    promised: u64,
    /// Uncompressed files more than stored ones.
    cuts: u64,
}

#[test]
fn what_was_acknowledged_or_served_survives_the_loss_of_unsynced_writes() {
    let seed = mutate::seed();
    let runs = std::env::var("BINLOGZ_CRASHES").ok().and_then(|runs| runs.parse().ok()).unwrap_or(CRASHES);
    let met = Mutex::new(Met::default());
    for number in 0..runs {
        run(seed.wrapping_add(number), &mut met.lock());
    }
    let met = met.into_inner();
    println!("{runs} runs of {LIVES} lives: {met:?}");
    assert!(
        met.in_recovery > 0 && met.while_receiving > runs && met.promised > runs && met.cuts > runs,
        "{met:?}"
    );
}
