//! One session after another: their events in the log, in which form, and under which GTID.

use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{CompressionType, TransactionPayloadEvent, TransactionPayloadHeader, XaId};
use binlogz_binlog::gtid::Gtid;
use binlogz_encryption::Keyring;
use binlogz_engine::{
    CommitStage, Engine, EngineOptions, Error, GtidNext, PlainReason, TransactionForm, VariableScope,
    VariableValue,
};
use binlogz_payload::Ineligible;
use binlogz_payload::statistics::{LogType, TransactionFigures};
use binlogz_store::MemoryStorage;
use binlogz_testkit::corpus;

use crate::common::{ON, UUID, clocks, events, insert, open};

const HEAD: [EventType; 2] = [EventType::FORMAT_DESCRIPTION, EventType::PREVIOUS_GTIDS];

#[test]
fn a_transaction_of_rows_is_compressed_and_others_are_not() {
    let engine = open(MemoryStorage::new(), &[ON]);
    let mut session = engine.session();
    session.begin().unwrap();
    insert(&mut session, 300);
    let committed = session.commit().unwrap();
    let TransactionForm::Compressed { uncompressed_bytes, compressed_bytes } = committed.outcome else {
        panic!("{committed:?}")
    };
    assert!(compressed_bytes < uncompressed_bytes / 2, "{committed:?}");
    assert_eq!(committed.gtid, Some(Gtid::new(UUID.into(), 1).unwrap()));
    assert_eq!(engine.store().positions().unwrap().durable, committed.end.unwrap());

    session.statement("shop", "CREATE TABLE t (a INT)").unwrap();
    let ddl = session.commit().unwrap();
    let reason = |outcome| match outcome {
        TransactionForm::Plain { reason, .. } => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(ddl.outcome), PlainReason::Ineligible(Ineligible::NotRowFormat));
    session.mark_non_transactional();
    insert(&mut session, 10);
    assert_eq!(
        reason(session.commit().unwrap().outcome),
        PlainReason::Ineligible(Ineligible::NonTransactional)
    );
    session.set(VariableScope::Session, ON.0, VariableValue::Text("OFF")).unwrap();
    insert(&mut session, 10);
    assert_eq!(reason(session.commit().unwrap().outcome), PlainReason::Off);
    // Nothing was changed, so nothing is logged.
    session.begin().unwrap();
    assert_eq!(session.commit().unwrap().outcome, TransactionForm::Empty);
    session.begin().unwrap();
    insert(&mut session, 10);
    assert_eq!(session.rollback().unwrap(), None);

    use EventType as E;
    let rows = [E::GTID, E::QUERY, E::TABLE_MAP, E::WRITE_ROWS];
    let expected = [
        &HEAD[..],
        &[E::GTID, E::TRANSACTION_PAYLOAD],
        &[E::GTID, E::QUERY],
        &rows,
        &[E::QUERY],
        &rows,
        &[E::XID],
    ]
    .concat();
    assert_eq!(events(engine.store()), [expected]);
    let statistics: Vec<_> = engine
        .compression_statistics()
        .iter()
        .map(|(log, kind, row)| (log.to_string(), kind.0, row.transaction_counter))
        .collect();
    assert_eq!(statistics, [("BINARY".into(), 0, 1), ("BINARY".into(), 255, 3)]);
    assert_eq!(engine.stage(CommitStage::Compressing).count, 3);
    engine.truncate_statistics();
    engine.truncate_stages();
    assert!(engine.compression_statistics().is_empty());
    assert_eq!(engine.stage(CommitStage::Compressing).count, 0);
}

#[test]
fn savepoints_take_back_what_came_behind_them() {
    let engine = open(MemoryStorage::new(), &[]);
    let mut session = engine.session();
    // As observed on the server: the savepoint's statement stays, everything after it is removed, RELEASE is
    // not logged.
    session.begin().unwrap();
    insert(&mut session, 1);
    session.savepoint("a`").unwrap();
    insert(&mut session, 2);
    session.rollback_to("a`").unwrap();
    insert(&mut session, 3);
    session.savepoint("b").unwrap();
    session.release_savepoint("b").unwrap();
    assert!(session.rollback_to("b").is_err());
    session.rollback_to("a`").unwrap();
    session.commit().unwrap();
    // A savepoint before everything else is not logged, and so nothing at all is.
    session.begin().unwrap();
    session.savepoint("z").unwrap();
    insert(&mut session, 4);
    session.rollback_to("z").unwrap();
    assert_eq!(session.commit().unwrap().outcome, TransactionForm::Empty);
    use EventType as E;
    let expected = [&HEAD[..], &[E::GTID, E::QUERY, E::TABLE_MAP, E::WRITE_ROWS, E::QUERY, E::XID]].concat();
    assert_eq!(events(engine.store()), [expected]);
}

#[test]
fn xa_transactions_are_compressed_up_to_their_prepare() {
    let engine = open(MemoryStorage::new(), &[ON]);
    let mut session = engine.session();
    let xa_id = XaId { format_id: 1, gtrid: b"two", bqual: b"" };
    session.xa_start(xa_id).unwrap();
    insert(&mut session, 100);
    session.xa_prepare(xa_id, false).unwrap();
    assert!(matches!(session.commit().unwrap().outcome, TransactionForm::Compressed { .. }));
    let second = session.xa_commit(xa_id).unwrap().outcome;
    assert!(matches!(
        second,
        TransactionForm::Plain { reason: PlainReason::Ineligible(Ineligible::NoRows), .. }
    ));
    session.xa_start(xa_id).unwrap();
    insert(&mut session, 100);
    session.xa_prepare(xa_id, true).unwrap();
    assert!(matches!(session.commit().unwrap().outcome, TransactionForm::Compressed { .. }));
    session.xa_rollback(xa_id).unwrap();
    // A transaction without an end is refused, and dropped.
    session.xa_start(xa_id).unwrap();
    session.mark_non_transactional();
    assert!(session.rollback().unwrap().is_some());
    assert!(!session.in_transaction());
}

#[test]
fn gtids_are_automatic_given_tagged_or_none() {
    let storage = MemoryStorage::new();
    let engine = open(storage.clone(), &[]);
    let mut session = engine.session();
    let commit = |session: &mut binlogz_engine::Session| {
        insert(session, 5);
        session.commit()
    };
    let tag = "tag_1".parse().unwrap();
    let other: Gtid = "14104470-e54d-11f1-848d-02fc00000001:7".parse().unwrap();
    commit(&mut session).unwrap();
    session.set_gtid_next(GtidNext::Automatic(Some(tag))).unwrap();
    assert_eq!(commit(&mut session).unwrap().gtid.unwrap().tsid().tag, Some(tag));
    session.set_gtid_next(GtidNext::Given(other)).unwrap();
    assert_eq!(commit(&mut session).unwrap().gtid, Some(other));
    session.set_gtid_next(GtidNext::Given(other)).unwrap();
    assert!(matches!(commit(&mut session), Err(Error::GtidTaken { gtid }) if gtid == other));
    assert!(session.set_gtid_next(GtidNext::Anonymous).is_err());
    // Given and empty: logged all the same.
    let empty = Gtid::new(UUID.into(), 2).unwrap();
    session.set_gtid_next(GtidNext::Given(empty)).unwrap();
    assert_eq!(session.commit().unwrap().gtid, Some(empty));
    // The next free number is after it.
    assert_eq!(commit(&mut session).unwrap().gtid.unwrap().gno(), 3);
    let executed = engine.gtid_executed();
    assert_eq!(executed.to_string(), format!("14104470-e54d-11f1-848d-02fc00000001:7,{UUID}:1-3:tag_1:1"));
    engine.close().unwrap();
    let engine = open(storage, &[]);
    assert_eq!(engine.gtid_executed(), executed);
    assert_eq!(engine.store().previous_gtids(binlogz_store::FileNumber(2)).unwrap(), executed);

    let options = EngineOptions { gtid_mode: false, ..EngineOptions::new(UUID, 7) };
    let (engine, _) = Engine::open(Arc::new(MemoryStorage::new()), options).unwrap();
    let mut session = engine.session();
    assert_eq!(commit(&mut session).unwrap().gtid, None);
    assert!(session.set_gtid_next(GtidNext::Given(other)).is_err());
    assert!(events(engine.store())[0].contains(&EventType::ANONYMOUS_GTID));
}

#[test]
fn files_rotate_between_transactions_and_clocks_begin_anew() {
    let engine = open(MemoryStorage::new(), &[("max_binlog_size", VariableValue::Integer(4096))]);
    let mut session = engine.session();
    for _ in 0..10 {
        insert(&mut session, 1500);
        session.commit().unwrap();
    }
    engine.rotate().unwrap();
    let logs = engine.store().logs().unwrap();
    assert_eq!(logs.len(), 5, "three transactions a file: {logs:?}");
    let three = vec![(0, 1), (1, 2), (2, 3)];
    assert_eq!(clocks(engine.store()), [three.clone(), three.clone(), three, vec![(0, 1)], vec![]]);
    let files = events(engine.store());
    assert_eq!(files[0].last(), Some(&EventType::ROTATE));
    assert_eq!(files[4], HEAD);
}

/// A replica's statistics: received transactions are listed separately from its own commits.
#[test]
fn received_transactions_are_counted_apart() {
    let engine = open(MemoryStorage::new(), &[ON]);
    let mut session = engine.session();
    insert(&mut session, 300);
    let TransactionForm::Compressed { uncompressed_bytes, compressed_bytes } =
        session.commit().unwrap().outcome
    else {
        panic!("not compressed")
    };
    let own = engine.compression_statistics();
    let received = |number, compressed_bytes| TransactionFigures {
        id: Some(Gtid::new(UUID.into(), number).unwrap()),
        compressed_bytes,
        uncompressed_bytes: 1000,
        timestamp: Some(1_700_000_000_000_000 + number),
    };
    engine.count_received(CompressionType::ZSTD, received(7, 100));
    engine.count_received(CompressionType::ZSTD, received(8, 260));
    engine.count_received(CompressionType::NONE, received(9, 1000));
    let rows = engine.compression_statistics();
    assert_eq!(rows.len(), 3);
    assert!(rows.contains(&own[0]), "{rows:?}");
    assert_eq!(own[0].2.compressed_bytes_counter, compressed_bytes);
    assert_eq!(own[0].2.uncompressed_bytes_counter, uncompressed_bytes);
    let row = |compression| {
        let row = rows.iter().find(|(log, of, _)| *log == LogType::Relay && *of == compression);
        row.unwrap_or_else(|| panic!("{rows:?}")).2
    };
    let zstd = row(CompressionType::ZSTD);
    assert_eq!((zstd.transaction_counter, zstd.compressed_bytes_counter), (2, 360));
    assert_eq!((zstd.uncompressed_bytes_counter, zstd.compression_percentage()), (2000, 82));
    assert_eq!((zstd.first_transaction, zstd.last_transaction), (received(7, 100), received(8, 260)));
    assert_eq!(row(CompressionType::NONE).transaction_counter, 1);
    engine.truncate_statistics();
    assert!(engine.compression_statistics().is_empty());
}

#[test]
fn encryption_goes_on_and_off_between_files() {
    let keyring = Arc::new(Keyring::open(&corpus::encrypted().keyring).unwrap());
    let uuid = keyring.servers().first().unwrap().parse().unwrap();
    let storage = MemoryStorage::new();
    let options = EngineOptions { keyring: Some(keyring), ..EngineOptions::new(uuid, 7) };
    let (engine, _) = Engine::open(Arc::new(storage.clone()), options.clone()).unwrap();
    let mut session = engine.session();
    for on in [1, 1, 0] {
        engine.set_global("binlog_encryption", VariableValue::Integer(on)).unwrap();
        insert(&mut session, 100);
        session.commit().unwrap();
    }
    let encrypted: Vec<bool> = engine.store().logs().unwrap().iter().map(|log| log.encrypted).collect();
    assert_eq!(encrypted, [false, true, false], "a new file only where it changes");
    let gtids = |events: &[EventType]| events.iter().filter(|event| event.is_gtid()).count();
    let counts: Vec<usize> = events(engine.store()).iter().map(|events| gtids(events)).collect();
    assert_eq!(counts, [0, 2, 1]);
    engine.close().unwrap();
    let (engine, report) = Engine::open(Arc::new(storage), options).unwrap();
    assert_eq!(report.gtids.to_string(), format!("{uuid}:1-3"));
    drop(engine);
    // Without a key for this server: the server's error, and everything as before.
    let engine = open(MemoryStorage::new(), &[]);
    let error = engine.set_global("binlog_encryption", VariableValue::Text("ON")).unwrap_err();
    assert!(matches!(&error, Error::Variable(error) if error.code == 3794), "{error}");
    assert_eq!(engine.global("binlog_encryption").unwrap(), "0");
    let mut session = engine.session();
    insert(&mut session, 1);
    session.commit().unwrap();
}

#[test]
fn a_payload_that_is_damaged_is_refused() {
    let engine = open(MemoryStorage::new(), &[]);
    let mut session = engine.session();
    let mut refused = |payload: &[u8], kind: CompressionType| {
        let header = TransactionPayloadHeader::new(kind, payload.len() as u64, None);
        let error = session
            .append_payload(&TransactionPayloadEvent { header, payload, trailing: &[] })
            .unwrap_err()
            .to_string();
        assert_eq!(session.rollback().unwrap(), None);
        error
    };
    let error = refused(b"no frame", CompressionType::ZSTD);
    assert!(error.starts_with("zstd: "), "{error}");
    let error = refused(&[0; 30], CompressionType::NONE);
    assert_eq!(error, "payload: bytes that are no event of a transaction, expected whole events");
    assert!(!refused(&[0; 7], CompressionType::NONE).is_empty());
    assert_eq!(engine.stage(CommitStage::Decompressing).count, 1);
}

#[test]
fn a_transaction_has_a_bound() {
    let options = EngineOptions { max_cache_size: 1000, ..EngineOptions::new(UUID, 7) };
    let (engine, _) = Engine::open(Arc::new(MemoryStorage::new()), options).unwrap();
    let mut session = engine.session();
    insert(&mut session, 500);
    let error = session.statement("", &"x".repeat(500)).unwrap_err();
    assert!(matches!(error, Error::CacheFull { max: 1000 }), "{error}");
    session.commit().unwrap();
    // After the end of a transaction nothing is appended.
    session.statement("", "CREATE TABLE t (a INT)").unwrap();
    assert!(session.statement("", "CREATE TABLE u (a INT)").is_err());
    session.commit().unwrap();
    engine.close().unwrap();
    insert(&mut session, 5);
    let error = session.commit().unwrap_err().to_string();
    assert_eq!(error, "commit: the engine was closed, expected an open engine");
}
