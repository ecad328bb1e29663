//! The mix of everything is made on a real server, and mysqlbinlog reads all of it.

use binlogz_testkit::{Compression, Result, Tool, mixed, require_tool};

#[test]
fn mysqlbinlog_reads_every_file_of_the_mix() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for binlog in mixed::binlogs()? {
        let output = mysql.mysqlbinlog(["--verify-binlog-checksum".as_ref(), binlog.path.as_os_str()])?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", binlog.name);
        let text = String::from_utf8_lossy(&output.stdout);
        let compressed = text.contains("Transaction_Payload");
        if binlog.compression == Compression::Off {
            assert!(!compressed, "{}", binlog.name);
        }
    }
    Ok(())
}
