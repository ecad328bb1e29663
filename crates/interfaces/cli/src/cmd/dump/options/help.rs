//! The output of `--help`, `--version` and `--print-defaults`.

use std::ffi::OsString;
use std::fmt::Write;

use binlogz_source::option_files::Defaults;

use super::DumpSettings;
use super::definition::{OptionDefinition, OptionKind};
use super::definitions::{GROUPS, OPTIONS};

/// The mysqlbinlog whose options, output and exit codes are meant; programs read it from `--version`.
const MYSQLBINLOG_VERSION: &str = "9.7.4";
/// Where a line of help ends.
const WIDTH: usize = 80;
/// Where the text of an option begins.
const INDENT: usize = 22;
const BEHIND_THE_NAMES: usize = 42;
/// Options that MySQL's programs keep in no variable.
const NO_VARIABLES: [&str; 3] = ["protocol", "ssl-mode", "ssl-fips-mode"];

pub(super) fn version(program: &str) -> String {
    let own = env!("CARGO_PKG_VERSION");
    format!(
        "{program}  Ver {MYSQLBINLOG_VERSION} for {} on {} (binlogz {own})\n",
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

/// The options and their values.
pub(super) fn help(program: &str, options: &DumpSettings) -> String {
    let mut text = version(program);
    text.push_str("\nPrints binary logs as text, ready for the mysql client.\n\n");
    let _ = writeln!(text, "Usage: {program} [options] log-files");
    for definition in OPTIONS {
        add_option(&mut text, definition);
    }
    let _ = write!(
        text,
        "\nOption files are read in this order, as by MySQL's programs:\n\
         /etc/my.cnf /etc/mysql/my.cnf $MYSQL_HOME/my.cnf ~/.my.cnf\n\
         Of them, these groups: {}\n\
         In front of all other options may stand:\n\
         --print-defaults        show what the option files say\n\
         --no-defaults           read none but the login file\n\
         --defaults-file=FILE    read only this one\n\
         --defaults-extra-file=FILE\n\
         \x20                       read this one too, after the global ones\n\
         --defaults-group-suffix=TEXT\n\
         \x20                       also groups whose names end with this\n\
         --login-path=NAME       read this group of the login file\n\
         --no-login-paths        do not read the login file\n\n",
        GROUPS.join(" ")
    );
    add_variables(&mut text, options);
    text
}

/// The options that most users need, in the order in which they think of them.
const SUMMARY: [&str; 21] = [
    "verbose",
    "base64-output",
    "database",
    "table",
    "start-datetime",
    "stop-datetime",
    "start-position",
    "stop-position",
    "include-gtids",
    "exclude-gtids",
    "stop-before-gtid",
    "format",
    "schema",
    "result-file",
    "follow",
    "read-from-remote-server",
    "host",
    "user",
    "password",
    "raw",
    "keyring",
];
/// How much of an option's help the summary has: up to the first of these.
const CLAUSE_ENDS: [&str; 3] = [";", " (", ": '"];

/// What `-h` alone shows: one screen.
pub(crate) fn summary() -> String {
    let mut text = "Print logs as mysqlbinlog does: the same options, the same output\n\n\
                    Usage: binlogz dump [OPTIONS] LOG...\n\n\
                    Examples:\n  \
                    binlogz dump -v binlog.000042\n  \
                    binlogz dump --start-datetime 10:42 --database shop binlog.0000* | mysql\n  \
                    binlogz dump --format jsonl archive | jq .table\n\nOptions:\n"
        .to_owned();
    let shown = SUMMARY.iter().filter_map(|name| OPTIONS.iter().find(|definition| definition.name == *name));
    for definition in shown {
        let ends = CLAUSE_ENDS.iter().filter_map(|end| definition.help.find(end));
        let help = definition.help.get(..ends.min().unwrap_or(usize::MAX)).unwrap_or(definition.help);
        add_option(&mut text, &OptionDefinition { help, kind: definition.kind.clone(), ..*definition });
    }
    text.push_str("\nAll options: binlogz dump --help\n");
    text
}

fn add_option(text: &mut String, definition: &OptionDefinition) {
    let mut head = match definition.short {
        Some(short) => format!("  -{short}, --{}", definition.name),
        None => format!("  --{}", definition.name),
    };
    match definition.kind {
        OptionKind::Switch(_)
        | OptionKind::Count(_)
        | OptionKind::Help
        | OptionKind::Version
        | OptionKind::Disabled => {}
        OptionKind::Password => head.push_str("[=PASSWORD]"),
        _ => head.push_str(&format!("={}", definition.value_name)),
    }
    let mut column = head.len();
    text.push_str(&head);
    if column >= INDENT {
        text.push('\n');
        column = 0;
    }
    let mut pad = INDENT - column;
    for word in definition.help.split(' ') {
        if pad == 1 && column + 1 + word.len() > WIDTH {
            text.push('\n');
            (column, pad) = (0, INDENT);
        }
        text.push_str(&" ".repeat(pad));
        text.push_str(word);
        column += pad + word.len();
        pad = 1;
    }
    text.push('\n');
}

/// The table that MySQL's programs have here.
fn add_variables(text: &mut String, options: &DumpSettings) {
    text.push_str("Variables (--variable-name=value)\nand boolean options {FALSE|TRUE}          ");
    text.push_str("Value (after reading options)\n");
    let _ = writeln!(text, "{} {}", "-".repeat(BEHIND_THE_NAMES - 1), "-".repeat(BEHIND_THE_NAMES - 1));
    let mut options = options.clone();
    let shown = OPTIONS.iter().filter(|definition| !NO_VARIABLES.contains(&definition.name));
    for definition in shown {
        let name = definition.name;
        let value = match &definition.kind {
            OptionKind::Switch(field) => if *field(&mut options) { "TRUE" } else { "FALSE" }.to_owned(),
            OptionKind::Unsigned(field, _) => field(&mut options).to_string(),
            OptionKind::Signed(field, _) => field(&mut options).to_string(),
            OptionKind::Text(_) => match options.given(name) {
                Some(value) => value.to_string_lossy().into_owned(),
                None => "(No default value)".into(),
            },
            OptionKind::Count(_)
            | OptionKind::Password
            | OptionKind::Disabled
            | OptionKind::Help
            | OptionKind::Version => continue,
        };
        let _ = writeln!(text, "{name:<width$}{value}", width = BEHIND_THE_NAMES);
    }
}

/// The settings of option files and arguments, passwords hidden.
pub(super) fn defaults(program: &str, defaults: &Defaults, arguments: &[OsString]) -> String {
    let mut text = format!("{program} would have been started with the following arguments:\n");
    for option in &defaults.options {
        match option.name.as_str() {
            "password" if option.value.is_some() => text.push_str("--password=***** "),
            _ => text.push_str(&format!("{} ", option.to_argument())),
        }
    }
    for argument in arguments {
        text.push_str(&format!("{} ", argument.to_string_lossy()));
    }
    text.push('\n');
    text
}
