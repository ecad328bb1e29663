//! The text before the events of all logs, and after them.

use super::options::PrintOptions;
use super::query::end_line;
use super::state::MysqlbinlogState;

/// The warning of a run that shows the middle of a statement; `{}` is the place where it ends.
const PARTIAL: &str = "This might be because the last statement was not fully written to the log, or because you \
    are using a --stop-position or --stop-datetime that refers to an event in the middle of a statement. The \
    event(s) from the partial statement have not been written to output.";

/// Appends the text before the first log.
pub(super) fn push_begin(out: &mut Vec<u8>, options: &PrintOptions) {
    out.extend_from_slice(
        b"# The proper term is pseudo_replica_mode, but we use this compatibility alias\n\
          # to make the statement usable on server versions 8.0.24 and older.\n\
          /*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/;\n",
    );
    if options.disable_log_bin {
        out.extend_from_slice(b"/*!32316 SET @OLD_SQL_LOG_BIN=@@SQL_LOG_BIN, SQL_LOG_BIN=0*/;\n");
    }
    out.extend_from_slice(b"/*!50003 SET @OLD_COMPLETION_TYPE=@@COMPLETION_TYPE,COMPLETION_TYPE=0*/;\n");
    if let Some(charset) = &options.set_charset {
        out.extend_from_slice(
            b"\n/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;\n\
              /*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;\n\
              /*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;\n\
              /*!40101 SET NAMES ",
        );
        out.extend_from_slice(charset);
        out.extend_from_slice(b" */;\n");
    }
    if options.idempotent {
        out.extend_from_slice(b"/*!50700 SET @@SESSION.RBR_EXEC_MODE=IDEMPOTENT*/;\n\n");
    }
    if options.require_row_format {
        out.extend_from_slice(b"/*!80019 SET @@SESSION.REQUIRE_ROW_FORMAT=1*/;\n\n");
    }
    out.extend_from_slice(b"DELIMITER /*!*/;\n");
}

/// Appends the end of a log: rolls back an open transaction.
pub(super) fn push_log_end(out: &mut Vec<u8>, options: &PrintOptions, state: &mut MysqlbinlogState) {
    if state.skipped_in_transaction {
        out.extend_from_slice(b"COMMIT /* added by mysqlbinlog */");
        end_line(out);
    }
    if state.in_transaction || state.seen_gtid {
        if !state.in_transaction {
            out.extend_from_slice(b"BEGIN /*added by mysqlbinlog */ ");
            end_line(out);
        }
        out.extend_from_slice(b"ROLLBACK /* added by mysqlbinlog */ ");
        end_line(out);
    }
    (state.skipped_in_transaction, state.in_transaction, state.seen_gtid) = (false, false, false);
    if !options.skip_gtids {
        out.extend_from_slice(b"SET @@SESSION.GTID_NEXT= 'AUTOMATIC' /* added by mysqlbinlog */ ");
        end_line(out);
    }
}

/// Appends the text after the last log.
pub(super) fn push_end(out: &mut Vec<u8>, options: &PrintOptions, state: &mut MysqlbinlogState) {
    push_log_end(out, options, state);
    out.extend_from_slice(
        b"DELIMITER ;\n# End of log file\n/*!50003 SET COMPLETION_TYPE=@OLD_COMPLETION_TYPE*/;\n",
    );
    if options.disable_log_bin {
        out.extend_from_slice(b"/*!32316 SET SQL_LOG_BIN=@OLD_SQL_LOG_BIN*/;\n");
    }
    if options.set_charset.is_some() {
        out.extend_from_slice(
            b"/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;\n\
              /*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;\n\
              /*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;\n",
        );
    }
    out.extend_from_slice(b"/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=0*/;\n");
    if options.idempotent {
        out.extend_from_slice(b"/*!50700 SET @@SESSION.RBR_EXEC_MODE=STRICT*/;\n");
    }
}

/// The warning on stderr of a run that ends in the middle of a statement.
pub fn warnings_at_end(state: &MysqlbinlogState) -> Option<String> {
    let what = if !state.buffered.is_empty() {
        "an Intvar_event, Rand_event or User_var_event with no matching Query_log_event"
    } else if state.rows_open {
        "a row event or a table map event that does not have the STMT_END_F flag set"
    } else {
        return None;
    };
    Some(format!("WARNING: The range of printed events ends with {what}. {PARTIAL}"))
}
