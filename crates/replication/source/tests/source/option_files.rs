//! Option files are read as MySQL's own programs read them: the tests compare with their `--print-defaults`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use binlogz_source::option_files::OptionFiles;
use binlogz_source::{ConnectOptions, PasswordOption, SslMode};
use binlogz_testkit::{Tool, require_tool};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const FILE: &str = r#"
# a comment
!include more.cnf
[client]
user = "a # b"   # comment
init-command='it\'s \"x\" \q \s|'
 port=3307
quick
socket =
host = a"b"c
ssl_mode = 'x' y
[other]
host=other
[client-1]
tab=a\tb\\n
!includedir dir
[ mysqlbinlog ]
host=a space in front
[mysqlbinlog ]  rest
; another comment
verbose
loose-abc = y = z
"#;

fn write(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::write(&path, text).expect("writable");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("mine");
}

fn only(path: &Path) -> OptionFiles {
    OptionFiles { defaults_file: Some(path.into()), no_login_paths: true, ..OptionFiles::default() }
}

#[test]
fn files_are_read_as_mysqls_programs_read_them() -> Outcome {
    let mysql = require_tool!(Tool::Mysql);
    let directory = tempfile::tempdir()?;
    let here = |text: &str| text.replace("!include ", &format!("!include {}/", directory.path().display()));
    write(
        directory.path(),
        "my.cnf",
        &here(FILE).replace("dir dir", &format!("dir {}/dir", directory.path().display())),
    );
    write(directory.path(), "more.cnf", "[client]\nhost=more\n");
    fs::create_dir(directory.path().join("dir"))?;
    write(directory.path(), "dir/z.cnf", "[mysqlbinlog]\nlast = z\n");
    write(directory.path(), "dir/a.cnf", "[mysqlbinlog]\nlast = a\n");
    write(directory.path(), "dir/a.txt", "[mysqlbinlog]\nlast = txt\n");
    let path = directory.path().join("my.cnf");

    for suffix in [None, Some("-1")] {
        let files = OptionFiles { group_suffix: suffix.map(str::to_owned), ..only(&path) };
        let defaults = files.read(&["mysqlbinlog", "client"])?;
        let ours: Vec<String> = defaults.options.iter().map(|option| option.to_argument()).collect();
        let mut arguments = vec![format!("--defaults-file={}", path.display()), "--no-login-paths".into()];
        arguments.extend(suffix.map(|suffix| format!("--defaults-group-suffix={suffix}")));
        arguments.push("--print-defaults".into());
        let printed = mysql.mysqlbinlog(&arguments)?.stdout;
        let printed = String::from_utf8_lossy(&printed);
        let (_, theirs) = printed.split_once('\n').ok_or("no arguments")?;
        assert_eq!(ours.join(" ").trim(), theirs.trim(), "suffix {suffix:?}");
        assert!(ours.len() > 10);
    }
    Ok(())
}

#[test]
fn a_connection_takes_its_options_and_leaves_the_rest() -> Outcome {
    let directory = tempfile::tempdir()?;
    let text = "[client]\nhost=db1\nssl-mode=REQUIRED\npassword=secret\nverbose\n[mysqlbinlog]\nhost=db2\n";
    write(directory.path(), "my.cnf", text);
    let mut connect = ConnectOptions::new("test");
    let rest =
        only(&directory.path().join("my.cnf")).read(&["client", "mysqlbinlog"])?.apply(&mut connect)?;
    assert_eq!(connect.host(), "db2");
    assert_eq!(connect.tls.mode, Some(SslMode::Required));
    assert!(matches!(&connect.password, PasswordOption::Given(password) if password.as_bytes() == b"secret"));
    let rest: Vec<String> = rest.iter().map(|option| option.to_argument()).collect();
    assert_eq!(rest, ["--verbose"]);
    Ok(())
}

#[test]
fn trouble_names_file_and_line() -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("my.cnf");
    for (text, said) in [
        ("[client]\n[mysql", "my.cnf line 2: group has no closing bracket"),
        ("\nhost=1", "my.cnf line 2: option stands in no group"),
        ("[client]\nport=x", "my.cnf line 2: port is x, expected a number in range"),
        ("!includedir /no/such", "read /no/such: No such file or directory (os error 2)"),
    ] {
        write(directory.path(), "my.cnf", text);
        let mut connect = ConnectOptions::new("test");
        let read = only(&path).read(&["client"]).and_then(|defaults| defaults.apply(&mut connect));
        let error = read.expect_err(said).to_string();
        assert!(error.ends_with(said), "{error}");
    }
    let error = only(&directory.path().join("none")).read(&["client"]).expect_err("no file").to_string();
    assert!(error.contains("none: No such file"), "{error}");
    Ok(())
}

#[test]
fn what_is_not_trusted_is_passed_over_aloud() -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("my.cnf");
    write(directory.path(), "my.cnf", &format!("[client]\nhost=1\n!include {}\n", path.display()));
    let defaults = only(&path).read(&["client"])?;
    assert_eq!(defaults.options.len(), 11, "itself and ten times more");
    let [warning] = &defaults.warnings[..] else { panic!("{:?}", defaults.warnings) };
    assert!(warning.ends_with("my.cnf line 3: files include one another too deeply"), "{warning}");

    write(directory.path(), "my.cnf", "!include /no/such\n[client]\nhost=1\n");
    let defaults = only(&path).read(&["client"])?;
    assert_eq!((defaults.options.len(), defaults.warnings.len()), (1, 1));
    assert!(defaults.warnings[0].starts_with("/no/such is ignored: No such file"));

    fs::set_permissions(&path, Permissions::from_mode(0o666))?;
    let defaults = only(&path).read(&["client"])?;
    assert_eq!((defaults.options.len(), defaults.warnings.len()), (0, 1));
    assert!(defaults.warnings[0].contains("everybody can write it"));
    Ok(())
}

#[test]
fn they_stand_in_front_of_all_other_arguments() {
    let arguments = ["--defaults-file=a", "--login-path=b", "--host=c", "--no-defaults"].map(str::to_owned);
    let mut files = OptionFiles::default();
    assert_eq!(files.take_arguments(&arguments), 2);
    assert_eq!(files.defaults_file.as_deref(), Some(Path::new("a")));
    assert_eq!(files.login_path.as_deref(), Some("b"));
    assert!(!files.no_defaults);
}
