//! Reads option files and arguments, one after the other, into options.

use std::ffi::OsString;

use binlogz_source::option_files::{Defaults, OptionFiles};

use super::check::check;
use super::definitions::GROUPS;
use super::getopt::{Getopt, ParseStop};
use super::help;
use super::{DumpSettings, ERROR, WARNING};

/// Exit code of usage that only the whole of it shows to be bad.
const FAILURE: u8 = 1;

/// The arguments, parsed.
#[derive(Debug)]
pub(crate) struct ParsedArguments {
    /// Lines for stderr, to be printed first.
    pub(crate) told: String,
    pub(crate) outcome: ArgumentsOutcome,
}

/// The next step.
#[derive(Debug)]
pub(crate) enum ArgumentsOutcome {
    /// Dump logs.
    Dump(Box<DumpSettings>),
    /// Print this, and end with the code.
    Show(String, u8),
    /// End with the code.
    End(u8),
}

/// Reads option files and arguments; `program` is how the program was called.
pub(crate) fn parse(program: &str, arguments: &[OsString]) -> ParsedArguments {
    let mut getopt = Getopt::new(program);
    let outcome = match take_all(program, arguments, &mut getopt) {
        Ok(outcome) => outcome,
        Err(ParseStop::Help) => ArgumentsOutcome::Show(help::help(program, &getopt.options), 0),
        Err(ParseStop::Version) => ArgumentsOutcome::Show(help::version(program), 0),
        Err(ParseStop::Code(code)) => ArgumentsOutcome::End(code),
    };
    ParsedArguments { told: getopt.told, outcome }
}

fn take_all(
    program: &str,
    arguments: &[OsString],
    getopt: &mut Getopt<'_>,
) -> Result<ArgumentsOutcome, ParseStop> {
    let mut files = OptionFiles::default();
    // Those that say which files to read are plain text.
    let texts: Vec<String> =
        arguments.iter().map_while(|argument| argument.to_str()).map(str::to_owned).collect();
    let taken = files.take_arguments(&texts);
    let mut arguments = arguments.get(taken..).unwrap_or_default();
    let defaults = read_files(&files, getopt)?;
    let from_files: Vec<OsString> =
        defaults.options.iter().map(|option| option.to_argument().into()).collect();
    if let Some((first, rest)) = arguments.split_first()
        && first == "--print-defaults"
    {
        if !files.no_defaults {
            return Ok(ArgumentsOutcome::Show(help::defaults(program, &defaults, rest), 0));
        }
        arguments = rest;
    }
    getopt.take_file_options(&from_files)?;
    getopt.take_arguments(arguments)?;
    if getopt.options.logs.is_empty() && !getopt.options.finds_logs() {
        return Ok(ArgumentsOutcome::Show(help::help(program, &getopt.options), FAILURE));
    }
    check(getopt)?;
    Ok(ArgumentsOutcome::Dump(Box::new(std::mem::take(&mut getopt.options))))
}

fn read_files(files: &OptionFiles, getopt: &mut Getopt<'_>) -> Result<Defaults, ParseStop> {
    match files.read(&GROUPS) {
        Ok(defaults) => {
            for warning in &defaults.warnings {
                getopt.tell(WARNING, warning);
            }
            Ok(defaults)
        }
        Err(error) => {
            getopt.tell(ERROR, &error.to_string());
            getopt.tell(ERROR, "Fatal error in defaults handling. Program aborted!");
            Err(ParseStop::Code(FAILURE))
        }
    }
}

#[cfg(test)]
mod tests {
    use binlogz_print::mysqlbinlog::Base64Output;

    use super::super::{DumpFormat, RemoteSource};
    use super::*;

    fn parsed(arguments: &[&str]) -> ParsedArguments {
        let arguments: Vec<OsString> =
            ["--no-defaults", "--no-login-paths"].iter().chain(arguments).map(Into::into).collect();
        parse("/usr/bin/mysqlbinlog", &arguments)
    }

    fn options(arguments: &[&str]) -> DumpSettings {
        match parsed(arguments) {
            ParsedArguments { outcome: ArgumentsOutcome::Dump(options), .. } => *options,
            other => panic!("{arguments:?}: {other:?}"),
        }
    }

    #[test]
    fn every_way_to_write_an_option() {
        for arguments in [
            ["--offset=5", "x"].as_slice(),
            &["--offset", "5", "x"],
            &["-o5", "x"],
            &["-o", "5", "x"],
            &["x", "-o", "5"],
            &["-Ho5", "--skip-hexdump", "x"],
            &["--loose-offset=5", "--loose-nonsense", "--", "x"],
            &["--maximum-offset=5", "x"],
        ] {
            assert_eq!((options(arguments).offset, options(arguments).hexdump), (5, false), "{arguments:?}");
        }
        assert!(options(&["--skip-hexdump=0", "x"]).hexdump);
        assert!(options(&["--enable-hexdump", "x"]).hexdump);
        assert!(!options(&["--enable-hexdump=0", "x"]).hexdump);
        assert!(options(&["--skip-loose-hexdump", "x"]).hexdump);
        assert!(!options(&["--disable_force_if_open", "x"]).force_if_open);
        assert_eq!(options(&["-vv", "--verbose", "x"]).verbose, 3);
        assert_eq!(options(&["--", "-v", "-"]).logs, ["-v", "-"].map(std::path::PathBuf::from));
    }

    #[test]
    fn options_become_plain_data() {
        let found = options(&[
            "--base64-output=decode-r",
            "--rewrite-db= a -> b ",
            "--rewrite-db=b->c",
            "--table=shop.a.b",
            "--stop-before-gtid=1410447f-e54d-11f1-848d-02fc00000001:7",
            "--include-gtids=1410447f-e54d-11f1-848d-02fc00000001:1-5",
            "--format=jsonl",
            "--jobs=2",
            "x",
        ]);
        assert_eq!(found.base64_output, Base64Output::DecodeRows);
        let rewrites: Vec<_> =
            found.rewrite_db.iter().map(|r| (r.from.as_slice(), r.to.as_slice())).collect();
        assert_eq!(rewrites, [(b"a".as_slice(), b"b".as_slice()), (b"b", b"c")]);
        assert_eq!(
            (found.tables[0].database.as_slice(), found.tables[0].table.as_slice()),
            (b"shop".as_slice(), b"a.b".as_slice())
        );
        assert_eq!(found.stop_before_gtid.unwrap().to_string(), "1410447f-e54d-11f1-848d-02fc00000001:7");
        assert_eq!(found.include_gtids.unwrap().to_string(), "1410447f-e54d-11f1-848d-02fc00000001:1-5");
        assert_eq!((found.format, found.jobs.map(usize::from)), (DumpFormat::Jsonl, Some(2)));
        assert_eq!((found.start_position, found.stop_position, found.remote_source), (4, None, None));
    }

    #[test]
    fn a_server_is_told_an_id() {
        let id = |arguments: &[&str]| options(arguments).own_server_id();
        assert_eq!(id(&["-R", "x"]), 0);
        assert_eq!(id(&["-R", "--stop-never", "x"]), 1);
        assert_eq!(id(&["-R", "--stop-never", "--stop-never-slave-server-id=7", "x"]), 7);
        assert_eq!(id(&["-R", "--connection-server-id=9", "x"]), 9);
        let found = options(&["-R", "--stop-never", "x"]);
        assert_eq!((found.remote_source, found.to_last_log), (Some(RemoteSource::NonGtids), true));
    }

    #[test]
    fn a_connection_is_made_of_its_options() {
        let found =
            options(&["-R", "-hdb1", "--port=1K", "--protocol=t", "--ssl-mode=dis", "--password=x", "x"]);
        let connect = found.connect("test").unwrap();
        assert_eq!(connect.server(), "db1:1024");
        for (argument, said) in [
            ("--port=70000", "port is 70000, expected a number in range"),
            ("--protocol=PIPE", "protocol is PIPE, expected TCP or SOCKET"),
            ("--ssl-fips-mode=ON", "there is no FIPS mode: --ssl-fips-mode must be OFF"),
            (
                "--compression-algorithms=zstd,lz4",
                "compression-algorithms is 'zstd,lz4', expected some of zlib, zstd and uncompressed",
            ),
        ] {
            assert_eq!(options(&[argument, "x"]).connect("test").unwrap_err().to_string(), said);
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        let found = options(&["-psecret", "x"]);
        assert!(!help::help("m", &found).contains("secret"));
    }
}
