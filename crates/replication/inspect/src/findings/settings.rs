//! Rows about settings: the compression switch, the log's format, packets, replication.

use binlogz_payload::ServerGeneration;

use crate::ask::Fact;
use crate::facts::{COMPRESSION, GlobalSettings, LEVEL, ServerFacts};
use crate::report::{Finding, FindingVerdict};

use super::not_known;

/// A payload is one event of up to 1 GiB, which is also the most that the packet limit can be.
const PAYLOAD_MAX: u64 = 1 << 30;
/// The server's default of max_allowed_packet.
const PACKET_DEFAULT: u64 = 64 << 20;

pub(super) fn findings(facts: &ServerFacts) -> Vec<Finding> {
    let settings = &facts.settings;
    vec![
        switch(settings, facts.generation()),
        log_bin(settings),
        binlog_format(settings),
        row_image(settings),
        checksum(settings),
        encryption(settings),
        max_allowed_packet(settings),
        replica_max_allowed_packet(settings),
        rows_query(settings),
        group_replication(settings),
        connection_compression(facts),
        parallel_type(settings),
    ]
}

fn switch(settings: &GlobalSettings, generation: ServerGeneration) -> Finding {
    let state = settings.get(&[COMPRESSION]).unwrap_or("not there");
    let level = settings.get(&[LEVEL]).unwrap_or("?");
    Finding::ok(
        COMPRESSION,
        match generation.only_level() {
            None => format!("{state}, level {level}"),
            Some(only) => format!("{state}, at level {only} in this release; {LEVEL} has no effect"),
        },
    )
}

fn log_bin(settings: &GlobalSettings) -> Finding {
    match settings.is_on(&["log_bin"]) {
        true => Finding::ok("log_bin", "ON"),
        false => Finding::new(
            "log_bin",
            "OFF",
            FindingVerdict::Warn,
            "this server writes no binary log: nothing is compressed",
        ),
    }
}

fn binlog_format(settings: &GlobalSettings) -> Finding {
    const WHAT: &str = "binlog_format";
    match settings.get(&[WHAT]) {
        Some("ROW") => Finding::ok(WHAT, "ROW"),
        // Removed once it can only be ROW.
        None => Finding::ok(WHAT, "ROW (no other format in this release)"),
        Some("STATEMENT") => Finding::new(
            WHAT,
            "STATEMENT",
            FindingVerdict::Warn,
            "no transaction with a statement in it is compressed: SET PERSIST binlog_format = ROW first",
        ),
        Some(other) => Finding::new(
            WHAT,
            other,
            FindingVerdict::Warn,
            "a transaction with a single statement in it stays plain; ROW compresses all",
        ),
    }
}

fn row_image(settings: &GlobalSettings) -> Finding {
    const WHAT: &str = "binlog_row_image";
    match settings.get(&[WHAT]) {
        Some("FULL") => Finding::ok(WHAT, "FULL: before and after images repeat, which compresses well"),
        image => Finding::ok(
            WHAT,
            format!("{}: there is less to save than with FULL", image.unwrap_or("not there")),
        ),
    }
}

fn checksum(settings: &GlobalSettings) -> Finding {
    const WHAT: &str = "binlog_checksum";
    match settings.get(&[WHAT]) {
        Some("NONE") => Finding::new(
            WHAT,
            "NONE",
            FindingVerdict::Warn,
            "a damaged payload loses a whole transaction and may go unnoticed: SET PERSIST binlog_checksum = CRC32",
        ),
        value => Finding::ok(WHAT, format!("{}: one over each payload event", value.unwrap_or("not there"))),
    }
}

fn encryption(settings: &GlobalSettings) -> Finding {
    const WHAT: &str = "binlog_encryption";
    match settings.is_on(&[WHAT]) {
        true => Finding::ok(
            WHAT,
            "ON: compressed first, then encrypted; programs that read files need the keyring",
        ),
        false => Finding::ok(WHAT, "OFF"),
    }
}

fn max_allowed_packet(settings: &GlobalSettings) -> Finding {
    const WHAT: &str = "max_allowed_packet";
    let Some(size) = settings.number(&[WHAT]) else { return Finding::ok(WHAT, "not there") };
    if size >= PACKET_DEFAULT {
        return Finding::ok(WHAT, bytes(size));
    }
    let remedy = format!(
        "a payload is one event however many rows it has: clients that take this as their limit may refuse it; \
         SET PERSIST max_allowed_packet = {PACKET_DEFAULT}"
    );
    Finding::new(WHAT, bytes(size), FindingVerdict::Warn, remedy)
}

fn replica_max_allowed_packet(settings: &GlobalSettings) -> Finding {
    const WHAT: &str = "replica_max_allowed_packet";
    let names = [WHAT, "slave_max_allowed_packet"];
    let (Some(size), Some(name)) =
        (settings.number(&names), names.iter().find(|name| settings.get(&[name]).is_some()))
    else {
        return Finding::ok(WHAT, "not there");
    };
    if size >= PAYLOAD_MAX {
        return Finding::ok(WHAT, bytes(size));
    }
    let remedy = format!(
        "as a replica this server stops at a larger payload (error 13125): SET PERSIST {name} = {PAYLOAD_MAX}"
    );
    Finding::new(WHAT, bytes(size), FindingVerdict::Warn, remedy)
}

fn rows_query(settings: &GlobalSettings) -> Finding {
    const WHAT: &str = "binlog_rows_query_log_events";
    match settings.is_on(&[WHAT]) {
        true => Finding::ok(WHAT, "ON: the statements' texts are compressed with the rows"),
        false => Finding::ok(WHAT, "OFF"),
    }
}

fn group_replication(settings: &GlobalSettings) -> Finding {
    const WHAT: &str = "group_replication_compression_threshold";
    if settings.get(&["group_replication_group_name"]).is_none_or(str::is_empty) {
        return Finding::ok(WHAT, "Group Replication is not in use");
    }
    match settings.number(&[WHAT]) {
        None | Some(0) => Finding::ok(WHAT, "0: messages of the group are not compressed again"),
        Some(size) => Finding::new(
            WHAT,
            format!("{}: messages above this are compressed once more, with LZ4", bytes(size)),
            FindingVerdict::Warn,
            "payloads don't shrink twice: set it to 0 on every member, with Group Replication stopped there",
        ),
    }
}

fn connection_compression(facts: &ServerFacts) -> Finding {
    const WHAT: &str = "connection_compression";
    let mut doubled = Vec::new();
    if facts.settings.is_on(&["replica_compressed_protocol", "slave_compressed_protocol"]) {
        doubled.push("replica_compressed_protocol is ON".to_owned());
    }
    for channel in facts.channels.known().into_iter().flatten() {
        if !channel.compression.is_empty() && channel.compression != "uncompressed" {
            let name = if channel.name.is_empty() { "the default channel" } else { &channel.name };
            doubled.push(format!("{name} from {} asks for {}", channel.source, channel.compression));
        }
    }
    for consumer in facts.consumers.list.iter().filter(|consumer| consumer.compressed_connection) {
        doubled.push(format!(
            "the connection of {}@{} is compressed",
            consumer.user.as_deref().unwrap_or("?"),
            consumer.host.as_deref().unwrap_or("?")
        ));
    }
    if !doubled.is_empty() {
        return Finding::new(
            WHAT,
            doubled.join("; "),
            FindingVerdict::Warn,
            "payloads don't shrink twice, only the CPU is spent twice: SOURCE_COMPRESSION_ALGORITHMS = 'uncompressed' \
             in CHANGE REPLICATION SOURCE TO, SET PERSIST replica_compressed_protocol = OFF",
        );
    }
    for fact in [facts.channels.as_ref().map(drop), facts.consumers.compression.clone()] {
        if fact.known().is_none() && fact != Fact::Absent {
            return not_known(WHAT, &fact, "");
        }
    }
    let allowed = facts.settings.get(&["protocol_compression_algorithms"]).unwrap_or("not there");
    Finding::ok(WHAT, format!("none seen; protocol_compression_algorithms allows {allowed}"))
}

fn parallel_type(settings: &GlobalSettings) -> Finding {
    const WHAT: &str = "replica_parallel_type";
    match settings.get(&[WHAT, "slave_parallel_type"]) {
        Some("DATABASE") => Finding::new(
            WHAT,
            "DATABASE",
            FindingVerdict::Warn,
            "the coordinator has to open every payload to learn its databases, and parallelism suffers: \
             SET PERSIST replica_parallel_type = LOGICAL_CLOCK, with the applier stopped",
        ),
        Some(other) => Finding::ok(WHAT, other),
        None => Finding::ok(WHAT, "LOGICAL_CLOCK (no other in this release)"),
    }
}

fn bytes(size: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS.iter().find(|(unit, _)| size >= *unit && size.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{size} bytes"), |(unit, name)| format!("{} {name}", size / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_server_at_hand_can_have() {
        let verdict = |row: fn(&GlobalSettings) -> Finding, settings: &[(&str, &str)]| {
            row(&GlobalSettings::of(settings)).verdict
        };
        assert_eq!(verdict(parallel_type, &[("slave_parallel_type", "DATABASE")]), FindingVerdict::Warn);
        assert_eq!(verdict(parallel_type, &[("replica_parallel_type", "LOGICAL_CLOCK")]), FindingVerdict::Ok);
        let group = ("group_replication_group_name", "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa");
        let threshold = |size| ("group_replication_compression_threshold", size);
        assert_eq!(verdict(group_replication, &[group, threshold("1000000")]), FindingVerdict::Warn);
        assert_eq!(verdict(group_replication, &[group, threshold("0")]), FindingVerdict::Ok);
        assert_eq!(verdict(group_replication, &[threshold("1000000")]), FindingVerdict::Ok);
        assert_eq!(
            verdict(replica_max_allowed_packet, &[("slave_max_allowed_packet", "67108864")]),
            FindingVerdict::Warn
        );
        assert_eq!(verdict(binlog_format, &[("binlog_format", "STATEMENT")]), FindingVerdict::Warn);
        assert_eq!(verdict(binlog_format, &[]), FindingVerdict::Ok);
    }

    #[test]
    fn a_level_without_effect_is_not_told_as_the_level() {
        let settings = GlobalSettings::of(&[(COMPRESSION, "ON"), (LEVEL, "6")]);
        let found = |generation| switch(&settings, generation).found;
        assert_eq!(found(ServerGeneration::Sized), "ON, level 6");
        let expected =
            "ON, at level 3 in this release; binlog_transaction_compression_level_zstd has no effect";
        assert_eq!(found(ServerGeneration::Flushed), expected);
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!([1 << 30, 3 << 20, 1000].map(bytes), ["1 GiB", "3 MiB", "1000 bytes"]);
    }
}
