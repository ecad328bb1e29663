//! The columns `Event_type` and `Info` of SHOW BINLOG EVENTS, as MySQL 9.7 prints them.
//!
//! `Info` is bytes, not text: statements and names keep the character set in which they were logged. The
//! server's oddities are kept, since people compare: a rotate's position and an integer variable are printed
//! signed, and an incident's message only if it is empty.
//!
//! The other columns are the event's position. The events inside a payload all have the payload's end as
//! `Pos` and `End_log_pos`; a caller that opens the payload prints them. (Every form was taken from a live
//! MySQL 9.7.4; `tests/show_events.rs` compares both.)

use crate::charset::{Charset, collation_name};
use crate::event::{
    AnyEvent, IntvarEvent, IntvarVariable, QueryEvent, RowsFlags, UserVarEvent, UserVarType, UserVarValue,
};
use crate::event_type::EventType;
use crate::header::HeaderFlags;
use crate::row::decimal::{Decimal, DecimalFormat};
use crate::row::json::double::double_text;

/// The server's text for a value that it can't show.
const UNKNOWN_VALUE: &[u8] = b"???";

/// The column `Event_type`. Types that 9.7 refuses to read have the names that older servers gave them.
pub fn event_type_name(event_type: EventType) -> &'static str {
    event_type.shown_name()
}

/// Appends the column `Info`. `flags` are those of the event's header.
pub fn write_info(event: &AnyEvent<'_>, flags: HeaderFlags, info: &mut Vec<u8>) {
    match event {
        AnyEvent::Query(event) => write_query(event, flags, info),
        AnyEvent::Rotate(event) => {
            info.extend_from_slice(event.name);
            write_text(info, format_args!(";pos={}", event.position.cast_signed()));
        }
        AnyEvent::Intvar(event) => write_intvar(*event, info),
        AnyEvent::BeginLoadQuery(event) | AnyEvent::AppendBlock(event) => {
            write_text(info, format_args!(";file_id={};block_len={}", event.file_id, event.block.len()));
        }
        AnyEvent::DeleteFile(event) => write_text(info, format_args!(";file_id={}", event.file_id)),
        AnyEvent::Rand(event) => {
            write_text(info, format_args!("rand_seed1={},rand_seed2={}", event.seed1, event.seed2));
        }
        AnyEvent::UserVar(event) => write_user_var(event, info),
        AnyEvent::FormatDescription(event) => {
            let server = event.server_version();
            let binlog = event.binlog_version;
            write_text(info, format_args!("Server ver: {server}, Binlog ver: {binlog}"));
        }
        AnyEvent::Xid(event) => write_text(info, format_args!("COMMIT /* xid={} */", event.xid)),
        AnyEvent::ExecuteLoadQuery(event) => {
            write_use(&event.query, flags, info);
            info.extend_from_slice(event.query.statement);
            write_text(info, format_args!(" ;file_id={}", event.file_id));
        }
        AnyEvent::TableMap(event) => {
            write_text(info, format_args!("table_id: {} (", event.table_id));
            info.extend_from_slice(event.database);
            info.push(b'.');
            info.extend_from_slice(event.table);
            info.push(b')');
        }
        AnyEvent::Rows(event) => {
            write_text(info, format_args!("table_id: {}", event.table_id));
            write_rows_flags(event.flags, info);
        }
        AnyEvent::Incident(event) => {
            write_text(info, format_args!("#{} ({})", event.incident.0, event.incident));
            if event.message.is_empty() {
                info.extend_from_slice(b": ");
            }
        }
        AnyEvent::Ignorable(_) => info.extend_from_slice(b"# Unrecognized ignorable event"),
        AnyEvent::RowsQuery(event) => {
            info.extend_from_slice(b"# ");
            info.extend_from_slice(event.statement);
        }
        AnyEvent::Gtid(_) | AnyEvent::AnonymousGtid(_) | AnyEvent::GtidTagged(_) => write_gtid(event, info),
        AnyEvent::PreviousGtids(event) => write_text(info, format_args!("{:#}", event.gtid_set)),
        AnyEvent::TransactionContext(event) => {
            info.extend_from_slice(b"server_uuid=");
            info.extend_from_slice(event.server_uuid);
            write_text(info, format_args!("\tthread_id={}", event.thread_id));
        }
        AnyEvent::ViewChange(event) => {
            info.extend_from_slice(b"view_id=");
            info.extend_from_slice(event.view_name());
        }
        AnyEvent::XaPrepare(event) if event.one_phase => {
            write_text(info, format_args!("XA COMMIT {} ONE PHASE", event.xa_id));
        }
        AnyEvent::XaPrepare(event) => write_text(info, format_args!("XA PREPARE {}", event.xa_id)),
        AnyEvent::TransactionPayload(event) => {
            let kind = event.header.compression_type();
            let size = event.header.uncompressed_size().unwrap_or(0);
            write_text(info, format_args!("compression='{kind}', decompressed_size={size} bytes"));
        }
        // The statement, as MariaDB shows it.
        AnyEvent::Unknown(EventType::MARIADB_ANNOTATE_ROWS, statement) => info.extend_from_slice(statement),
        AnyEvent::Stop | AnyEvent::Heartbeat(_) | AnyEvent::HeartbeatV2(_) | AnyEvent::Unknown(..) => {}
    }
}

fn write_query(event: &QueryEvent<'_>, flags: HeaderFlags, info: &mut Vec<u8>) {
    write_use(event, flags, info);
    info.extend_from_slice(event.statement);
    if let Some(xid) = event.ddl_xid() {
        write_text(info, format_args!(" /* xid={xid} */"));
    }
}

/// The default database, if the statement depends on it.
fn write_use(event: &QueryEvent<'_>, flags: HeaderFlags, info: &mut Vec<u8>) {
    if !event.database.is_empty() && !flags.contains(HeaderFlags::SUPPRESS_USE) {
        info.extend_from_slice(b"use ");
        write_identifier(event.database, info);
        info.extend_from_slice(b"; ");
    }
}

fn write_intvar(event: IntvarEvent, info: &mut Vec<u8>) {
    let name = match event.variable {
        IntvarVariable(0) => "INVALID_INT",
        IntvarVariable::LAST_INSERT_ID => "LAST_INSERT_ID",
        IntvarVariable::INSERT_ID => "INSERT_ID",
        _ => "UNKNOWN",
    };
    write_text(info, format_args!("{name}={}", event.value.cast_signed()));
}

fn write_user_var(event: &UserVarEvent<'_>, info: &mut Vec<u8>) {
    info.push(b'@');
    write_identifier(event.name, info);
    info.push(b'=');
    match event.value {
        None => info.extend_from_slice(b"NULL"),
        Some(value) => {
            if write_user_var_value(&value, info).is_none() {
                info.extend_from_slice(UNKNOWN_VALUE);
            }
        }
    }
}

/// `None`, and nothing written, for a value that does not match its type.
fn write_user_var_value(value: &UserVarValue<'_>, info: &mut Vec<u8>) -> Option<()> {
    match value.value_type {
        UserVarType::STRING => {
            let charset = Charset::of_collation(value.collation.into())?.name();
            let collation = collation_name(value.collation.into())?;
            write_text(info, format_args!("_{charset} "));
            match value.bytes {
                [] => info.extend_from_slice(b"\"\""),
                bytes => {
                    info.extend_from_slice(b"0x");
                    bytes.iter().for_each(|byte| write_text(info, format_args!("{byte:02X}")));
                }
            }
            write_text(info, format_args!(" COLLATE {collation}"));
        }
        UserVarType::REAL => {
            let number = f64::from_le_bytes(value.bytes.try_into().ok()?);
            let text = double_text(if number.is_finite() { number } else { 0.0 });
            // Only JSON distinguishes whole doubles from integers.
            info.extend_from_slice(text.as_str().strip_suffix(".0").unwrap_or(text.as_str()).as_bytes());
        }
        UserVarType::INT => {
            let number = u64::from_le_bytes(value.bytes.try_into().ok()?);
            if value.is_unsigned() {
                write_text(info, format_args!("{number}"));
            } else {
                write_text(info, format_args!("{}", number.cast_signed()));
            }
        }
        UserVarType::DECIMAL => {
            let (&[precision, scale], digits) = value.bytes.split_first_chunk::<2>()?;
            let format = DecimalFormat::new(precision, scale).ok()?;
            let digits = digits.get(..usize::from(format.size()))?;
            info.extend_from_slice(Decimal::new(digits, format).ok()?.text().as_bytes());
        }
        _ => return None,
    }
    Some(())
}

fn write_rows_flags(flags: RowsFlags, info: &mut Vec<u8>) {
    if flags == RowsFlags::default() {
        return;
    }
    info.extend_from_slice(b" flags:");
    let mut unknown = flags.0;
    for (flag, name) in [
        (RowsFlags::STMT_END, " STMT_END_F"),
        (RowsFlags::NO_FOREIGN_KEY_CHECKS, " NO_FOREIGN_KEY_CHECKS_F"),
        (RowsFlags::RELAXED_UNIQUE_CHECKS, " RELAXED_UNIQUE_CHECKS_F"),
        (RowsFlags::USE_SQL_FOREIGN_KEY, " USE_SQL_FOREIGN_KEY_F"),
        (RowsFlags::COMPLETE_ROWS, " COMPLETE_ROWS_F"),
    ] {
        if flags.contains(flag) {
            info.extend_from_slice(name.as_bytes());
            unknown &= !flag.0;
        }
    }
    if unknown != 0 {
        write_text(info, format_args!(" UNKNOWN_FLAG({unknown:#x})"));
    }
}

fn write_gtid(event: &AnyEvent<'_>, info: &mut Vec<u8>) {
    let gtid = match event {
        AnyEvent::Gtid(event) => event.gtid(),
        AnyEvent::GtidTagged(event) => Some(event.gtid),
        _ => None,
    };
    match gtid {
        Some(gtid) => write_text(info, format_args!("SET @@SESSION.GTID_NEXT= '{gtid}'")),
        None => info.extend_from_slice(b"SET @@SESSION.GTID_NEXT= 'ANONYMOUS'"),
    }
}

/// A name between backticks; backticks inside it are doubled.
fn write_identifier(name: &[u8], info: &mut Vec<u8>) {
    info.push(b'`');
    for &byte in name {
        if byte == b'`' {
            info.push(byte);
        }
        info.push(byte);
    }
    info.push(b'`');
}

fn write_text(info: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    use std::io::Write;
    // Writing into a Vec can't fail.
    let _ = info.write_fmt(text);
}
