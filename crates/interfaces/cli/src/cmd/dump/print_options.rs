//! Converts the options of the command line for the printer.

use std::path::PathBuf;

use binlogz_print::EventSelection;
use binlogz_print::mysqlbinlog::PrintOptions;

use super::options::DumpSettings;

/// The number of bits of server ids; `--server-id-bits` may give fewer.
const SERVER_ID_BITS: u64 = 32;

/// The options that change the text, and those that choose the events to show.
pub(super) fn print_options(options: &DumpSettings) -> PrintOptions {
    let mask = match options.server_id_bits {
        bits if bits >= SERVER_ID_BITS => u32::MAX,
        bits => (1 << bits) - 1,
    };
    PrintOptions {
        base64_output: options.base64_output,
        verbose: options.verbose,
        short_form: options.short_form,
        hexdump: options.hexdump,
        print_table_metadata: options.print_table_metadata,
        require_row_format: options.require_row_format,
        idempotent: options.idempotent,
        disable_log_bin: options.disable_log_bin,
        set_charset: options.set_charset.clone(),
        skip_gtids: options.skip_gtids,
        force_if_open: options.force_if_open,
        local_load: options.local_load.clone().unwrap_or_else(temporary_folder),
        rewrite_db: options.rewrite_db.iter().map(|rule| (rule.from.clone(), rule.to.clone())).collect(),
        selection: EventSelection {
            offset: options.offset,
            start_time: options.start_datetime,
            stop_time: options.stop_datetime,
            server_id: (options.server_id != 0).then_some(options.server_id as u32),
            server_id_mask: mask,
            database: options.database.clone(),
            tables: options.tables.iter().map(|it| (it.database.clone(), it.table.clone())).collect(),
            include_gtids: options.include_gtids.clone(),
            exclude_gtids: options.exclude_gtids.clone(),
            stop_before_gtid: options.stop_before_gtid,
        },
    }
}

/// The folder where mysqlbinlog puts files when none was given.
fn temporary_folder() -> PathBuf {
    std::env::var_os("TMPDIR")
        .filter(|folder| !folder.is_empty())
        .map_or_else(|| "/tmp".into(), PathBuf::from)
}
