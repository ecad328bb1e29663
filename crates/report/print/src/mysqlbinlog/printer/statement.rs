//! Statements, their settings, and the files of LOAD DATA.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use binlogz_binlog::charset::{Charset, collation_name};
use binlogz_binlog::event::{
    DuplicateHandling, ExecuteLoadQueryEvent, IntvarEvent, IntvarVariable, LoadBlockEvent, QueryEvent,
    RandEvent, UserVarEvent, UserVarType, UserVarValue,
};
use binlogz_binlog::row::{Decimal, DecimalFormat};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{Error as BinlogError, EventType};

use super::{Pass, PrintStep, Run};
use crate::mysqlbinlog::query::{end_line, push_charset, push_description, push_settings};
use crate::mysqlbinlog::shown::ShownEvent;
use crate::mysqlbinlog::write::quote::{push_identifier, push_quoted};
use crate::number::{push_general, push_signed, push_unsigned};

/// utf8mb3_general_ci: the collation of names.
const NAMES_COLLATION: u16 = 33;

impl Run<'_> {
    pub(super) fn query(
        &mut self,
        shown: &ShownEvent<'_>,
    ) -> io::Result<Result<Option<PrintStep>, BinlogError>> {
        let query = match QueryEvent::decode(shown.body) {
            Ok(query) => query,
            Err(error) => return Ok(Err(error)),
        };
        let kind = StatementKind::of(query.statement);
        let starts = starts_group(kind);
        let ends = ends_group(kind);
        let skips = kind == StatementKind::Other
            && (self.is_other_database(query.database) || !self.options.selection.tables.is_empty());
        for held in std::mem::take(&mut self.state.buffered) {
            if !skips && let Err(error) = self.setting(&held.shown()) {
                return Ok(Err(error));
            }
        }
        if skips {
            if self.state.seen_gtid && !self.state.in_transaction && !starts && !ends {
                self.direct(b"COMMIT /* added by mysqlbinlog */");
                self.state.skipped_in_transaction = false;
                self.state.in_transaction = false;
                self.state.seen_gtid = false;
            } else {
                self.state.skipped_in_transaction = true;
            }
            return Ok(Ok(Some(PrintStep::Go)));
        }
        if ends {
            self.state.end_transaction();
        } else if starts {
            self.state.begin_transaction();
        } else if !self.state.in_transaction {
            // It commits by itself.
            self.state.seen_gtid = false;
        }
        if self.emit && !self.options.short_form {
            self.header(shown);
            push_description(&mut self.text.head, "Query", &query, kind == StatementKind::Other);
        }
        self.settings(shown, &query);
        if self.emit {
            let head = &mut self.text.head;
            head.extend_from_slice(query.statement);
            head.push(b'\n');
            end_line(head);
        }
        Ok(Ok(None))
    }

    pub(super) fn settings(&mut self, shown: &ShownEvent<'_>, query: &QueryEvent<'_>) {
        let out = if self.emit { &mut self.text.head } else { &mut self.pen.scratch };
        if !self.emit {
            out.clear();
        }
        let session = &mut self.state.session;
        push_settings(out, session, &shown.header, query, self.options, self.emit);
    }

    /// Prints an event that sets something for the next statement.
    pub(super) fn setting(&mut self, shown: &ShownEvent<'_>) -> Result<(), BinlogError> {
        if !self.emit {
            return Ok(());
        }
        if !self.options.short_form {
            self.header(shown);
            self.text.head.extend_from_slice(match shown.header.event_type {
                EventType::INTVAR => b"\tIntvar\n",
                EventType::RAND => b"\tRand\n",
                _ => b"\tUser_var\n",
            });
        }
        let head = &mut self.text.head;
        match shown.header.event_type {
            EventType::INTVAR => {
                let event = IntvarEvent::decode(shown.body)?;
                head.extend_from_slice(match event.variable {
                    IntvarVariable::LAST_INSERT_ID => b"SET LAST_INSERT_ID=",
                    IntvarVariable::INSERT_ID => b"SET INSERT_ID=",
                    _ => b"SET INVALID_INT=",
                });
                push_unsigned(head, event.value);
                end_line(head);
            }
            EventType::RAND => {
                let event = RandEvent::decode(shown.body)?;
                head.extend_from_slice(b"SET @@RAND_SEED1=");
                push_unsigned(head, event.seed1);
                head.extend_from_slice(b", @@RAND_SEED2=");
                push_unsigned(head, event.seed2);
                end_line(head);
            }
            _ => {
                let event = UserVarEvent::decode(shown.body)?;
                let connection = match &event.value {
                    Some(value) if value.value_type != UserVarType::STRING => value.collation as u16,
                    _ => NAMES_COLLATION,
                };
                let charset = [NAMES_COLLATION, connection, NAMES_COLLATION];
                // Where the text begins, we don't know what was printed before: then nothing is reset.
                let differs = self.state.session.charset != Some(charset);
                if differs {
                    push_charset(head, charset);
                }
                head.extend_from_slice(b"SET @");
                push_identifier(head, event.name);
                head.extend_from_slice(b":=");
                push_user_value(head, event.value.as_ref());
                end_line(head);
                if let Some(printed) = self.state.session.charset.filter(|_| differs) {
                    push_charset(head, printed);
                }
            }
        }
        Ok(())
    }

    /// A block of a file that LOAD DATA reads.
    pub(super) fn load_block(
        &mut self,
        shown: &ShownEvent<'_>,
    ) -> io::Result<Result<Option<PrintStep>, BinlogError>> {
        let event = match LoadBlockEvent::decode(shown.body) {
            Ok(event) => event,
            Err(error) => return Ok(Err(error)),
        };
        let begins = shown.header.event_type == EventType::BEGIN_LOAD_QUERY;
        if self.emit && !self.options.short_form {
            self.header(shown);
            let head = &mut self.text.head;
            head.extend_from_slice(if begins {
                b"\n#Begin_load_query: file_id: "
            } else {
                b"\n#Append_block: file_id: "
            });
            push_unsigned(head, event.file_id.into());
            head.extend_from_slice(b"  block_len: ");
            push_unsigned(head, event.block.len() as u64);
            head.push(b'\n');
        }
        let path = if begins {
            let path = self.load_file(event.file_id)?;
            self.state.load_files.insert(event.file_id, path.clone());
            Some(path)
        } else {
            self.state.load_files.get(&event.file_id).cloned()
        };
        if let Some(path) = path.filter(|_| self.pass != Pass::Text) {
            OpenOptions::new().append(true).open(path)?.write_all(event.block)?;
        }
        Ok(Ok(None))
    }

    /// The file for a LOAD DATA: a new one, or the one made before the text.
    pub(super) fn load_file(&mut self, file_id: u32) -> io::Result<PathBuf> {
        if self.pass == Pass::Text
            && let Some(path) = self.state.made_files.pop_front()
        {
            return Ok(path);
        }
        let path = make_file(&self.options.local_load, file_id)?;
        if self.pass == Pass::State {
            self.state.made_files.push_back(path.clone());
        }
        Ok(path)
    }

    pub(super) fn execute_load(
        &mut self,
        shown: &ShownEvent<'_>,
    ) -> io::Result<Result<Option<PrintStep>, BinlogError>> {
        let load = match ExecuteLoadQueryEvent::decode(shown.body) {
            Ok(load) => load,
            Err(error) => return Ok(Err(error)),
        };
        let path = self.state.load_files.remove(&load.file_id);
        if self.is_other_database(load.query.database) {
            self.state.skipped_in_transaction = true;
            return Ok(Ok(None));
        }
        let Some(path) = path else {
            if self.emit {
                let told = "WARNING: Ignoring Execute_load_query since there is no Begin_load_query event for file_id";
                self.state.warnings.push(format!("{told}: {}", load.file_id));
            }
            return Ok(Ok(None));
        };
        if self.emit && !self.options.short_form {
            self.header(shown);
            push_description(&mut self.text.head, "Execute_load_query", &load.query, true);
        }
        self.settings(shown, &load.query);
        if self.emit {
            let head = &mut self.text.head;
            let statement = load.query.statement;
            let place = |at: u32| (at as usize).min(statement.len());
            head.extend_from_slice(statement.get(..place(load.file_name_start)).unwrap_or_default());
            head.extend_from_slice(b" LOCAL INFILE ");
            push_quoted(head, path.as_os_str().as_encoded_bytes());
            if load.duplicate_handling == DuplicateHandling::REPLACE {
                head.extend_from_slice(b" REPLACE");
            }
            head.extend_from_slice(b" INTO");
            head.extend_from_slice(statement.get(place(load.file_name_end)..).unwrap_or_default());
            head.push(b'\n');
            end_line(head);
            if !self.options.short_form {
                head.extend_from_slice(b"# file_id: ");
                push_unsigned(head, load.file_id.into());
                head.extend_from_slice(b" \n");
            }
        }
        Ok(Ok(None))
    }
}

/// Only the user who prints the log may read the rows of a LOAD DATA: the folder is often readable by
/// everyone.
const LOAD_FILE_MODE: u32 = 0o600;

/// Makes a file with a unique name, as mysqlbinlog names it.
pub(super) fn make_file(folder: &Path, file_id: u32) -> io::Result<PathBuf> {
    for number in 0.. {
        let path = folder.join(format!("SQL_LOAD_MB-{file_id:x}-{number:x}"));
        match OpenOptions::new().write(true).create_new(true).mode(LOAD_FILE_MODE).open(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("no name is left for the file of a LOAD DATA"))
}

pub(super) fn starts_group(kind: StatementKind) -> bool {
    matches!(kind, StatementKind::Begin | StatementKind::XaStart)
}

pub(super) fn ends_group(kind: StatementKind) -> bool {
    matches!(kind, StatementKind::Commit | StatementKind::Rollback | StatementKind::XaRollback)
}

pub(super) fn push_user_value(out: &mut Vec<u8>, value: Option<&UserVarValue<'_>>) {
    let Some(value) = value else { return out.extend_from_slice(b"NULL") };
    match value.value_type {
        UserVarType::INT => {
            let number = value.bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            if value.is_unsigned() { push_unsigned(out, number) } else { push_signed(out, number as i64) }
        }
        UserVarType::REAL => {
            let number = value.bytes.first_chunk().map_or(0.0, |bytes| f64::from_le_bytes(*bytes));
            push_general(out, number, 14);
        }
        UserVarType::DECIMAL => push_decimal(out, value.bytes),
        _ => match (Charset::of_collation(value.collation.into()), collation_name(value.collation.into())) {
            (Some(charset), Some(collation)) => {
                out.push(b'_');
                out.extend_from_slice(charset.name().as_bytes());
                out.extend_from_slice(b" 0x");
                for byte in value.bytes {
                    for nibble in [byte >> 4, byte & 15] {
                        out.push(if nibble < 10 { b'0' + nibble } else { b'A' + nibble - 10 });
                    }
                }
                out.extend_from_slice(b" COLLATE `");
                out.extend_from_slice(collation.as_bytes());
                out.push(b'`');
            }
            _ => out.extend_from_slice(b"???"),
        },
    }
}

/// Precision, scale, digits.
pub(super) fn push_decimal(out: &mut Vec<u8>, bytes: &[u8]) {
    let decimal = bytes.split_first_chunk().and_then(|([precision, scale], digits)| {
        let format = DecimalFormat::new(*precision, *scale).ok()?;
        Decimal::new(digits, format).ok()
    });
    if let Some(decimal) = decimal {
        out.extend_from_slice(decimal.text().as_bytes());
    }
}
