//! A source that is a group (Group Replication, as in an InnoDB Cluster): the relay follows any member, and goes over to another one
//! when its member dies or leaves the group. Minutes on a busy machine: scripts/soak/group.sh runs it.

use std::thread;
use std::time::{Duration, Instant};

use binlogz_testkit::{InstalledTool, MysqlSandbox, Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, reserved_port, url};

const BY_GTID: &str = "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1";
/// The group's name, which is the server uuid of its GTIDs.
const GROUP: &str = "6f2b1a00-0000-4000-8000-00000000b1f2";
const PATIENCE: Duration = Duration::from_secs(120);

/// Servers of one group; the first one begins it and is its primary.
fn group(mysql: &'static InstalledTool) -> Vec<MysqlSandbox> {
    let ports: Vec<u16> = (0..3).map(|_| reserved_port()).collect();
    let seeds: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let start = |port: u16| {
        mysql
            .sandbox()
            .option("plugin-load-add", "group_replication.so")
            .option("report-host", "127.0.0.1")
            .option("loose-group-replication-group-name", GROUP)
            .option("loose-group-replication-local-address", &format!("127.0.0.1:{port}"))
            .option("loose-group-replication-group-seeds", &seeds.join(","))
            .option("loose-group-replication-start-on-boot", "OFF")
            .option("loose-group-replication-recovery-get-public-key", "ON")
            .start()
            .unwrap()
    };
    let members: Vec<MysqlSandbox> = thread::scope(|scope| {
        let threads: Vec<_> = ports.iter().map(|port| scope.spawn(|| start(*port))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (at, member) in members.iter().enumerate() {
        // Members must have no transactions of their own.
        member.sql("RESET BINARY LOGS AND GTIDS").unwrap();
        member
            .sql(
                "CHANGE REPLICATION SOURCE TO SOURCE_USER='repl', SOURCE_PASSWORD='repl' \
                 FOR CHANNEL 'group_replication_recovery'",
            )
            .unwrap();
        if at == 0 {
            member
                .sql(
                    "SET GLOBAL group_replication_bootstrap_group = ON; START GROUP_REPLICATION; \
                 SET GLOBAL group_replication_bootstrap_group = OFF",
                )
                .unwrap();
        } else {
            member.sql("START GROUP_REPLICATION").unwrap();
        }
        are_online(member, at + 1);
    }
    members
}

/// Waits until a member sees this many of its group online.
fn are_online(member: &MysqlSandbox, count: usize) {
    let asked =
        "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'";
    let until = Instant::now() + PATIENCE;
    loop {
        let said = member.sql(asked).unwrap();
        if said.trim_end() == count.to_string() {
            return;
        }
        let all = || member.sql("SELECT * FROM performance_schema.replication_group_members").unwrap();
        assert!(
            Instant::now() < until,
            "{count} members are not online: {}\n{}",
            all(),
            member.log().unwrap()
        );
        thread::sleep(Duration::from_millis(200));
    }
}

/// The member that takes writes.
fn primary<'m>(members: &[&'m MysqlSandbox]) -> &'m MysqlSandbox {
    let until = Instant::now() + PATIENCE;
    loop {
        let takes_writes = |member: &&&MysqlSandbox| {
            member.sql("SELECT @@GLOBAL.super_read_only").unwrap().trim_end() == "0"
        };
        if let Some(primary) = members.iter().find(takes_writes) {
            return primary;
        }
        assert!(Instant::now() < until, "no member takes writes");
        thread::sleep(Duration::from_millis(200));
    }
}

fn write(member: &MysqlSandbox, word: &str) {
    let one = |at: u32| format!("INSERT INTO d.t (body) VALUES (REPEAT('{word} {at} ', 50));\n");
    member.sql(&(0..50).map(one).collect::<String>()).unwrap();
}

/// All members that are left have the same, then the relay, then its replica; nothing is missing, and no row is there twice.
fn all_arrives(relay: &mut Relay, members: &[&MysqlSandbox], replica: &MysqlSandbox) {
    let source = primary(members);
    let all = source.gtid_executed().unwrap();
    for member in members {
        member.sql(&format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{all}', 100)")).unwrap();
    }
    relay.wait_for("last transaction", |relay| {
        (relay.status()["log"]["gtid_executed"] == all.as_str()).then_some(())
    });
    replica.sql(&format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{all}', 100)")).unwrap();
    assert_eq!(replica.gtid_executed().unwrap(), all, "{}", relay.said());
    assert_eq!(replica.checksum_tables("d").unwrap(), source.checksum_tables("d").unwrap());
}

fn followed(relay: &Relay, member: &MysqlSandbox) -> bool {
    let status = relay.status();
    status["source"]["server"] == format!("127.0.0.1:{}", member.port())
        && status["source"]["phase"] == "receiving"
}

#[test]
#[ignore = "three servers of a group; scripts/soak/group.sh"]
fn any_member_of_a_group_is_followed_and_another_one_in_its_place() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut members = group(mysql);
    let replica = mysql.sandbox().start().unwrap();
    replica.sql("RESET BINARY LOGS AND GTIDS").unwrap();
    members[0]
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)")
        .unwrap();
    for member in &members {
        // The account sees the members' states.
        are_online(member, 3);
    }
    members[0]
        .sql("GRANT SELECT ON performance_schema.replication_group_members TO repl@'127.0.0.1'")
        .unwrap();
    write(&members[0], "first");
    // A secondary is as good as the primary.
    let configuration =
        Configuration::of([url(&members[1]), url(&members[0]), url(&members[2])]).account("reader", "");
    let mut relay = configuration.start(&folder);
    relay.replicates_to(&replica, "reader", BY_GTID);
    {
        let all: Vec<&MysqlSandbox> = members.iter().collect();
        write(primary(&all), "second");
        all_arrives(&mut relay, &all, &replica);
        assert!(followed(&relay, &members[1]), "{}", relay.status());
    }

    // The member that is followed dies, while the primary writes.
    thread::scope(|scope| {
        let (primary, others) = members.split_first_mut().unwrap();
        let primary = &*primary;
        let writing = scope.spawn(move || (0..20).for_each(|at| write(primary, &format!("during {at}"))));
        thread::sleep(Duration::from_millis(700));
        others[0].kill();
        writing.join().unwrap();
    });
    {
        let left = [&members[0], &members[2]];
        are_online(left[0], 2);
        write(primary(&left), "third");
        all_arrives(&mut relay, &left, &replica);
        assert!(followed(&relay, &members[0]), "{}", relay.status());
    }

    // The primary leaves the group, but can still be reached: nothing of the group comes from it any more.
    members[0].sql("STOP GROUP_REPLICATION").unwrap();
    let last = [&members[2]];
    are_online(last[0], 1);
    write(primary(&last), "fourth");
    all_arrives(&mut relay, &last, &replica);
    assert!(followed(&relay, &members[2]), "{}", relay.status());
    assert!(relay.said().contains("has left its group (OFFLINE)"), "{}", relay.said());

    // It comes back, and what it missed with it. The relay stays where it is, also over a kill.
    members[0].sql("START GROUP_REPLICATION").unwrap();
    are_online(last[0], 2);
    relay.kill();
    let left = [&members[2], &members[0]];
    write(primary(&left), "fifth");
    let mut relay = configuration.start(&folder);
    relay.replicates_to(&replica, "reader", BY_GTID);
    write(primary(&left), "sixth");
    all_arrives(&mut relay, &left, &replica);
    let rows = replica.sql("SELECT COUNT(*) FROM d.t").unwrap();
    assert_eq!(rows.trim_end(), (50 * (6 + 20)).to_string());
}
