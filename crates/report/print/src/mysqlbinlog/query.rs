//! A statement and the settings it depends on: only those that changed since they were last printed.

use binlogz_binlog::charset::Charset;
use binlogz_binlog::event::{QueryEvent, StatusVariable};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{EventHeader, HeaderFlags};

use super::DELIMITER;
use super::options::PrintOptions;
use super::state::PrintedSettings;
use super::write::local_time::push_padded;
use super::write::quote::push_identifier;
use crate::number::push_unsigned;

/// Modes that 8.0.5 removed, including those that combined several others. Older logs have them; a server
/// that refuses them is told to leave them out.
const REMOVED_SQL_MODES: u64 = 0x1003_ff00;
const WITHOUT_REMOVED_SQL_MODES: &[u8] = b"/*!80005 &~0x1003ff00*/";

/// The number printed for a thread with `--short-form`.
const SHORT_FORM_THREAD_ID: u64 = 999_999_999;

/// The session options, with the value they show for a bit that is set, in the order they are printed.
const FLAGS2: [(u32, &str, bool); 4] = [
    (1 << 26, "@@session.foreign_key_checks", false),
    (1 << 14, "@@session.sql_auto_is_null", true),
    (1 << 27, "@@session.unique_checks", false),
    (1 << 19, "@@session.autocommit", false),
];

/// The relevant settings, in the order in which they are in an event.
#[derive(Default)]
struct Settings<'a> {
    flags2: Option<u32>,
    sql_mode: Option<u64>,
    auto_increment: Option<(u16, u16)>,
    charset: Option<[u16; 3]>,
    time_zone: &'a [u8],
    lc_time_names: u16,
    collation_database: u16,
    microseconds: Option<u32>,
    explicit_defaults: Option<u8>,
    default_collation: u16,
    require_primary_key: Option<u8>,
    table_encryption: Option<u8>,
    cascade_triggers: u8,
    ddl_xid: Option<u64>,
}

impl<'a> Settings<'a> {
    fn of(query: &QueryEvent<'a>) -> Self {
        let mut settings = Settings::default();
        for variable in query.status_variables.iter().map_while(Result::ok) {
            match variable {
                StatusVariable::Flags2(flags) => settings.flags2 = Some(flags.0),
                StatusVariable::SqlMode(mode) => settings.sql_mode = Some(mode),
                StatusVariable::AutoIncrement { increment, offset } => {
                    settings.auto_increment = Some((increment, offset));
                }
                StatusVariable::Charset { client, connection, server } => {
                    settings.charset = Some([client, connection, server]);
                }
                StatusVariable::TimeZone(zone) => settings.time_zone = zone,
                StatusVariable::LcTimeNames(number) => settings.lc_time_names = number,
                StatusVariable::CharsetDatabase(number) => settings.collation_database = number,
                StatusVariable::Microseconds(fraction) | StatusVariable::HrNow(fraction) => {
                    settings.microseconds = Some(fraction);
                }
                StatusVariable::ExplicitDefaultsForTimestamp(on) => settings.explicit_defaults = Some(on),
                StatusVariable::DdlXid(xid) | StatusVariable::MariaDbXid(xid) => settings.ddl_xid = Some(xid),
                StatusVariable::DefaultCollationForUtf8mb4(number) => settings.default_collation = number,
                StatusVariable::SqlRequirePrimaryKey(on) => settings.require_primary_key = Some(on),
                StatusVariable::DefaultTableEncryption(on) => settings.table_encryption = Some(on),
                StatusVariable::EnableCascadeTriggers(on) => settings.cascade_triggers = on,
                _ => {}
            }
        }
        settings
    }
}

impl Settings<'_> {
    /// Whether none of them has to be shown with every statement.
    fn are_shown_once(&self) -> bool {
        self.microseconds.is_none()
            && self.explicit_defaults.is_none()
            && self.require_primary_key.is_none()
            && self.table_encryption.is_none()
    }
}

/// Appends the rest of the event's line. `may_have_xid`: the statement may commit by itself.
pub(super) fn push_description(out: &mut Vec<u8>, name: &str, query: &QueryEvent<'_>, may_have_xid: bool) {
    out.push(b'\t');
    out.extend_from_slice(name.as_bytes());
    for (label, number) in [
        (&b"\tthread_id="[..], query.thread_id),
        (b"\texec_time=", query.exec_time),
        (b"\terror_code=", query.error_code.into()),
    ] {
        out.extend_from_slice(label);
        push_unsigned(out, number.into());
    }
    if may_have_xid && let Some(xid) = Settings::of(query).ddl_xid {
        out.extend_from_slice(b"\tXid = ");
        push_unsigned(out, xid);
    }
    out.push(b'\n');
}

/// Appends the settings that changed, and notes them as printed. Without `emit` only what changed is
/// noted (and may be appended).
pub(super) fn push_settings(
    out: &mut Vec<u8>,
    session: &mut PrintedSettings,
    header: &EventHeader,
    query: &QueryEvent<'_>,
    options: &PrintOptions,
    emit: bool,
) {
    if header.flags.contains(HeaderFlags::SUPPRESS_USE) {
        // CREATE, ALTER and DROP DATABASE: the session's database afterwards is unknown.
        if StatementKind::of(query.statement).is_statement_based() {
            session.database.clear();
        }
    } else if session.database != query.database {
        session.database.clear();
        session.database.extend_from_slice(query.database);
        if !query.database.is_empty() {
            out.extend_from_slice(b"use ");
            push_identifier(out, query.database);
            end_line(out);
        }
    }
    // Most statements come with the settings of the one before.
    let same = session.settings_alone && session.settings == query.status_variables.0;
    let settings = if same { Settings::default() } else { Settings::of(query) };
    if emit {
        out.extend_from_slice(b"SET TIMESTAMP=");
        push_unsigned(out, header.timestamp.into());
        if let Some(fraction) = settings.microseconds.filter(|&fraction| fraction > 0) {
            out.push(b'.');
            push_padded(out, fraction.into(), 6, b'0');
        }
        end_line(out);
    }
    let thread_changed =
        header.flags.contains(HeaderFlags::THREAD_SPECIFIC) && session.thread_id != Some(query.thread_id);
    if (session.thread_id.is_none() || thread_changed) && !options.require_row_format {
        let shown = if options.short_form { SHORT_FORM_THREAD_ID } else { query.thread_id.into() };
        push_set(out, "pseudo_thread_id", shown);
        session.thread_id = Some(query.thread_id);
    }
    if same {
        return;
    }
    session.settings.clear();
    session.settings.extend_from_slice(query.status_variables.0);
    session.settings_alone = settings.are_shown_once();
    push_status_variables(out, session, &settings, emit);
}

/// Appends the settings of status variables that changed.
fn push_status_variables(
    out: &mut Vec<u8>,
    session: &mut PrintedSettings,
    settings: &Settings<'_>,
    emit: bool,
) {
    if let Some(flags) = settings.flags2 {
        let changed = session.flags2.map_or(u32::MAX, |printed| printed ^ flags);
        if changed != 0 {
            push_flags2(out, flags, changed);
            session.flags2 = Some(flags);
        }
    }
    if let Some(mode) = settings.sql_mode
        && session.sql_mode != Some(mode)
    {
        push_text(out, "SET @@session.sql_mode=", mode);
        if mode & REMOVED_SQL_MODES != 0 {
            out.extend_from_slice(WITHOUT_REMOVED_SQL_MODES);
        }
        end_line(out);
        session.sql_mode = Some(mode);
    }
    let auto_increment = settings.auto_increment.unwrap_or((1, 1));
    if session.auto_increment != auto_increment {
        let (increment, offset) = auto_increment;
        push_text(out, "SET @@session.auto_increment_increment=", increment.into());
        push_text(out, ", @@session.auto_increment_offset=", offset.into());
        end_line(out);
        session.auto_increment = auto_increment;
    }
    if let Some(charset) = settings.charset
        && session.charset != Some(charset)
    {
        push_charset(out, charset);
        session.charset = Some(charset);
    }
    push_locale(out, session, settings);
    if let Some(on) = settings.explicit_defaults.filter(|_| emit) {
        push_set(out, "explicit_defaults_for_timestamp", u64::from(on != 0));
    }
    push_newer_settings(out, session, settings, emit);
}

/// Appends the time zone, the language of names, and the collation of the default database, as far as they changed.
fn push_locale(out: &mut Vec<u8>, session: &mut PrintedSettings, settings: &Settings<'_>) {
    if !settings.time_zone.is_empty() && session.time_zone != settings.time_zone {
        out.extend_from_slice(b"SET @@session.time_zone='");
        out.extend_from_slice(settings.time_zone);
        out.push(b'\'');
        end_line(out);
        session.time_zone = settings.time_zone.to_vec();
    }
    if session.lc_time_names != Some(settings.lc_time_names) {
        push_set(out, "lc_time_names", settings.lc_time_names.into());
        session.lc_time_names = Some(settings.lc_time_names);
    }
    if session.collation_database != Some(settings.collation_database) {
        match settings.collation_database {
            0 => {
                out.extend_from_slice(b"SET @@session.collation_database=DEFAULT");
                end_line(out);
            }
            number => push_set(out, "collation_database", number.into()),
        }
        session.collation_database = Some(settings.collation_database);
    }
}

/// Appends the settings that older servers don't know, in comments that name the version.
fn push_newer_settings(
    out: &mut Vec<u8>,
    session: &mut PrintedSettings,
    settings: &Settings<'_>,
    emit: bool,
) {
    if session.default_collation != Some(settings.default_collation) {
        if settings.default_collation != 0 {
            push_versioned(out, "80011", "default_collation_for_utf8mb4", settings.default_collation.into());
        }
        session.default_collation = Some(settings.default_collation);
    }
    for (version, name, value) in [
        ("80013", "sql_require_primary_key", settings.require_primary_key),
        ("80016", "default_table_encryption", settings.table_encryption),
    ] {
        if let Some(value) = value.filter(|_| emit) {
            push_versioned(out, version, name, value.into());
        }
    }
    if session.cascade_triggers != settings.cascade_triggers {
        push_versioned(out, "90700", "enable_cascade_triggers", settings.cascade_triggers.into());
        session.cascade_triggers = settings.cascade_triggers;
    }
}

/// Appends the character set for the client, and the three collations.
pub(super) fn push_charset(out: &mut Vec<u8>, charset: [u16; 3]) {
    let [client, connection, server] = charset;
    if let Some(charset) = Charset::of_collation(client.into()) {
        out.extend_from_slice(b"/*!\\C ");
        out.extend_from_slice(charset.name().as_bytes());
        out.extend_from_slice(b" */");
        end_line(out);
    }
    push_text(out, "SET @@session.character_set_client=", client.into());
    push_text(out, ",@@session.collation_connection=", connection.into());
    push_text(out, ",@@session.collation_server=", server.into());
    end_line(out);
}

fn push_flags2(out: &mut Vec<u8>, flags: u32, changed: u32) {
    let mut separator = &b"SET "[..];
    for (bit, name, value_if_set) in FLAGS2.iter().copied().filter(|(bit, ..)| changed & bit != 0) {
        out.extend_from_slice(separator);
        let value = (flags & bit != 0) == value_if_set;
        out.extend_from_slice(name.as_bytes());
        push_text(out, "=", value.into());
        separator = b", ";
    }
    if separator == b"SET " {
        out.extend_from_slice(separator);
    }
    end_line(out);
}

fn push_set(out: &mut Vec<u8>, name: &str, value: u64) {
    out.extend_from_slice(b"SET @@session.");
    out.extend_from_slice(name.as_bytes());
    push_text(out, "=", value);
    end_line(out);
}

fn push_versioned(out: &mut Vec<u8>, version: &str, name: &str, value: u64) {
    for text in ["/*!", version, " SET @@session.", name, "="] {
        out.extend_from_slice(text.as_bytes());
    }
    push_unsigned(out, value);
    out.extend_from_slice(b"*/");
    end_line(out);
}

fn push_text(out: &mut Vec<u8>, text: &str, number: u64) {
    out.extend_from_slice(text.as_bytes());
    push_unsigned(out, number);
}

pub(super) fn end_line(out: &mut Vec<u8>) {
    out.extend_from_slice(DELIMITER);
    out.push(b'\n');
}
