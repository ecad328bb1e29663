//! Files that a replica by position knows by name before they are here: the relay is stopped at each operation of its disk while
//! it receives, and whatever name its log then ends with is asked for.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use binlogz_binlog::EventType;
use binlogz_binlog::gtid::ServerUuid;
use binlogz_relay_log::{Disk, Form, FormFile};
use binlogz_store::{FileNumber, Storage};
use binlogz_testkit::builder::UUID;
use binlogz_testkit::disk::{DiskFault, SimulatedDisk};
use binlogz_testkit::random::Random;

use super::crashes::{Known, options, receive};
use super::dumps::{CHECKSUM, InMemory, by_position, dump, events};
use super::open_source;
use super::simulated::{BASE, SourceLog};
use crate::error::Result;
use crate::options::SourceOptions;
use crate::serve::connections::client_form::FormPolicy;
use crate::source::RelaySource;

/// A disk with room for a second server's log.
#[derive(Debug)]
struct DiskWithFolder(SimulatedDisk, SimulatedDisk);

impl Disk for DiskWithFolder {
    fn has(&self, _: &str) -> bool {
        false
    }

    fn take(&self, folder: Option<&str>) -> binlogz_relay_log::Result<Arc<dyn Storage>> {
        let disk = if folder.is_some() { &self.1 } else { &self.0 };
        Ok(Arc::new(disk.clone()))
    }
}

fn relay(disk: &SimulatedDisk, form: Form) -> Result<RelaySource> {
    // One of some cut files, one without.
    let options = SourceOptions {
        form: FormPolicy::Always(form),
        uncompressed_file_size: if form == Form::Uncompressed { 4000 } else { 1 << 30 },
        ..options(&mut Random::new(5))
    };
    open_source(options, Arc::new(DiskWithFolder(disk.clone(), SimulatedDisk::new())))
}

/// The name in the form of the file that the stored log ends with the name of.
fn named(relay: &RelaySource, form: Form) -> Option<String> {
    let kept = relay.intake.lineages.served()?;
    if !kept.ends_with_rotate().unwrap() {
        return None;
    }
    Some(kept.names.name(form, kept.next_number(form).unwrap()?))
}

/// Stops a relay at this operation of its disk. Returns the next one, or `None` if it had received everything before.
fn after_a_crash(source: &SourceLog, operation: u64, form: Form, random: &mut Random) -> Option<RelaySource> {
    let disk = SimulatedDisk::new();
    let mut known = Known::default();
    disk.fail_at(operation, DiskFault::Crash);
    if let Ok(relay) = self::relay(&disk, form) {
        let received = receive(&relay, source, random, &mut known, usize::MAX);
        if !disk.is_stopped() {
            received.unwrap();
            return None;
        }
    }
    disk.crash(random);
    Some(self::relay(&disk, form).unwrap())
}

/// Asks a relay that was stopped at this operation for the file that its log names. Returns whether there was one.
fn ask_after_a_crash(source: &SourceLog, operation: u64, form: Form) -> Option<bool> {
    let random = &mut Random::new(operation);
    let relay = after_a_crash(source, operation, form, random)?;
    let Some(name) = named(&relay, form) else { return Some(false) };
    let connection = InMemory::default();
    thread::scope(|threads| {
        let asked = threads.spawn(|| dump(&relay, 1, CHECKSUM, &by_position(&name, 4), &connection));
        // Usually the client waits by now.
        thread::sleep(Duration::from_millis(5));
        let last = relay.intake.lineages.served().unwrap().store.positions().unwrap().durable.file;
        receive(&relay, source, random, &mut Known::default(), usize::MAX).unwrap();
        relay.intake.sync().unwrap();
        let what = format!("operation {operation}, {name}");
        asked.join().unwrap().unwrap_or_else(|error| panic!("{what}: {error}"));
        let messages = connection.messages();
        let events = events(&messages);
        let rotate = events.iter().find(|(header, _)| header.event_type == EventType::ROTATE).unwrap();
        assert!(String::from_utf8_lossy(rotate.1).contains(&name), "{what}: begins elsewhere");
        let first = FormFile::first_of(last.next());
        let kept = relay.intake.lineages.served().unwrap();
        assert_eq!(kept.name_of(form, first).unwrap(), name, "{what}");
    });
    Some(true)
}

#[test]
fn a_file_named_before_a_crash_is_waited_for_in_every_form() {
    let source = SourceLog::small();
    for form in Form::ALL {
        let mut met = 0;
        let mut operation = 0;
        while let Some(was_named) = ask_after_a_crash(&source, operation, form) {
            met += u64::from(was_named);
            operation += 1;
        }
        println!("{}: {operation} crashes, {met} of them left a name without its file", form.name());
        // At least the file is created, its head written and synced, the index written, synced and renamed.
        assert!(met >= 5, "{}: {met} of {operation}", form.name());
    }
}

/// The source is lost before its relay has the file whose name it told. Another server takes its place, whose log has a file of
/// that name.
#[test]
fn a_file_that_an_older_log_named_is_not_served_from_another_servers_log() {
    let source = SourceLog::small();
    let random = &mut Random::new(1);
    let relays = (0..).map_while(|operation| after_a_crash(&source, operation, Form::Received, random));
    let relay = relays.filter(|relay| named(relay, Form::Received).is_some()).last().unwrap();
    let name = named(&relay, Form::Received).unwrap();
    let older = relay.intake.lineages.served().unwrap();
    let (other, _) = relay.intake.lineages.begin(BASE, ServerUuid([7; 16])).unwrap();
    let file = source.files.iter().find(|file| file.name == name).unwrap();
    let number = other.store.names().number(&name).unwrap();
    other.store.writer().unwrap().begin_file(number, &file.bytes, None).unwrap();
    relay.intake.lineages.retire();
    assert!(older.is_retired() && relay.intake.lineages.served().unwrap().number == other.number);
    let check = || {
        let asked = dump(&relay, 1, CHECKSUM, &by_position(&name, 4), &InMemory::default());
        let error = asked.unwrap_err().to_string();
        let expected = "binlog.000002 is a file of this source's log and of one that was kept before it";
        assert!(error.starts_with(expected), "{error}");
    };
    check();
    // Retention leaves only a record of the older log.
    relay.intake.lineages.end(&older).unwrap();
    check();
}

#[test]
fn a_log_says_whether_it_ends_with_the_name_of_another_file() {
    let source = SourceLog::new(&mut Random::new(3), true);
    let relay = relay(&SimulatedDisk::new(), Form::Received).unwrap();
    let mut known = Known::default();
    let kept = relay.intake.keep(BASE, UUID, false).unwrap();
    assert_eq!((kept.next_number(Form::Received).unwrap(), kept.ends_with_rotate().unwrap()), (None, false));
    receive(&relay, &source, &mut Random::new(1), &mut known, usize::MAX).unwrap();
    relay.intake.sync().unwrap();
    let next = FileNumber(source.files.len() as u64 + 1);
    assert_eq!(kept.next_number(Form::Received).unwrap(), Some(next));
    assert!(!kept.ends_with_rotate().unwrap());
    assert!(kept.next_number(Form::Uncompressed).unwrap().is_some_and(|number| number >= next));
}
