//! The mix of everything is made on a real server, and mysqlbinlog reads all of it.

use binlogz_testkit::{Result, SampleCompression, Tool, mixed, require_tool};

#[test]
fn mysqlbinlog_reads_every_file_of_the_mix() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for binlog in mixed::binlogs()? {
        let output = mysql.mysqlbinlog(["--verify-binlog-checksum".as_ref(), binlog.path.as_os_str()])?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", binlog.name);
        let text = String::from_utf8_lossy(&output.stdout);
        let compressed = text.contains("Transaction_Payload");
        if binlog.compression == SampleCompression::Off {
            assert!(!compressed, "{}", binlog.name);
        }
    }
    Ok(())
}

#[test]
fn the_big_transaction_is_one_of_100_mb() -> Result<()> {
    require_tool!(Tool::Mysql);
    let bytes = |compression| Ok(mixed::big_transaction(compression)?.read().len());
    let plain: Result<usize> = bytes(SampleCompression::Off);
    let compressed: Result<usize> = bytes(SampleCompression::Level(3));
    assert!((100_000_000..110_000_000).contains(&plain?));
    assert!((1_000_000..20_000_000).contains(&compressed?));
    Ok(())
}
