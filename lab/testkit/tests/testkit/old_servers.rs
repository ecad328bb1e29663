//! Servers of other versions do what tests rely on: start, end, start again, replicate, and are killed.

use binlogz_testkit::server::ReplicaStart;
use binlogz_testkit::{MariadbSandbox, Mysql56Sandbox, MysqlSandbox, Result, Tool, require_tool};

const CHANGES: &str = "\
CREATE DATABASE shop; USE shop;
CREATE TABLE item (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100), price DECIMAL(10,2));
INSERT INTO item (name, price) VALUES ('tea', 3.20), ('coffee', 4.10);
UPDATE item SET price = price + 1;
DELETE FROM item WHERE name = 'tea';
";

/// A source that none of the old servers stops at.
fn source() -> Result<MysqlSandbox> {
    let source = Tool::Mysql.find()?.sandbox().readable_by_mariadb().start()?;
    source.sql(CHANGES)?;
    Ok(source)
}

#[test]
fn mysql_5_6_asks_for_its_source_and_starts_again() -> Result<()> {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    require_tool!(Tool::Mysql56);
    let source = source()?;
    let mut replica = Mysql56Sandbox::start(&[])?;
    assert_eq!(replica.sql("SELECT VERSION()")?, "5.6.24-log\n");
    replica.replicate_from_port(source.port(), ReplicaStart::Position("binlog.000001".into(), 4))?;
    let (file, offset) = source.position()?;
    // 9.7 has lost the only authentication that 5.6 knows: it takes something between them.
    let error = replica.wait_for_position(&file, offset).expect_err("it can't log in").to_string();
    assert!(error.contains("error connecting to master"), "{error}");
    replica.stop()?;
    replica.start()?;
    replica.kill();
    replica.start()?;
    assert_eq!(replica.sql("SELECT @@GLOBAL.gtid_mode")?, "ON\n");
    Ok(())
}

#[test]
fn mariadb_11_4_follows() -> Result<()> {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb114);
    let source = source()?;
    let mut replica = MariadbSandbox::start_version(Tool::Mariadb114, &[])?;
    replica.replicate_from_port(source.port(), "binlog.000001", 4)?;
    let (file, offset) = source.position()?;
    replica.wait_for_position(&file, offset)?;
    assert_eq!(replica.checksum_tables("shop")?, source.checksum_tables("shop")?);
    replica.stop()?;
    replica.start()?;
    assert_eq!(replica.sql("SELECT name FROM shop.item")?, "coffee\n");
    Ok(())
}

#[test]
#[ignore = "needs MySQL 8.0.33, a download of 550 MB"]
fn mysql_8_0_is_a_source_and_a_replica() -> Result<()> {
    require_tool!(Tool::Mysql);
    let mysql = require_tool!(Tool::Mysql80);
    let source = mysql.sandbox().compression(3).start()?;
    let replica = mysql.sandbox().start()?;
    source.sql(CHANGES)?;
    replica.replicate_from(&source)?;
    replica.wait_for_source(&source)?;
    assert_eq!(replica.checksum_tables("shop")?, source.checksum_tables("shop")?);
    assert_eq!(source.position()?.0, "binlog.000001");
    Ok(())
}
