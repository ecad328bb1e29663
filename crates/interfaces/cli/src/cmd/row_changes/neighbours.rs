//! Tables that are named and not in the logs: those of the logs that were probably meant.

use binlogz_row_changes::RowSelection;

use super::inputs::RecoverLog;
use crate::failure::warn;
use crate::similar::likely;

/// Names, for each table that isn't in the logs, those like it that are. Of an archive not every part was read, so nothing is said.
pub(super) fn name_likely_tables(selection: &RowSelection, logs: &[RecoverLog]) {
    let Some(passed) = selection.passed.all().filter(|_| !logs.iter().any(RecoverLog::is_archived)) else {
        return;
    };
    for asked in selection.tables.iter().filter(|asked| !passed.contains(asked)) {
        let name = |(database, table): &(String, String)| format!("{database}.{table}");
        if let Some(likely) = likely(&name(asked), passed.iter().map(name)) {
            warn(&format!("{}: no such table is in these logs; {likely}", name(asked)));
        }
    }
}
