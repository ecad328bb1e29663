//! What a real bash offers after the Tab key.

use std::process::Command;

use crate::common::Folder;

/// Sources the script of this program, and prints what the function that it registers offers for a command line that ends in a word
/// that was begun.
const OFFERED: &str = r#"
source "$1"; shift
registered=$(complete -p binlogz) || exit 3
function=${registered#*-F }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
"${function%% *}" binlogz "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

fn offered(folder: &Folder, words: &[&str]) -> Vec<String> {
    let script = folder.path("binlogz.bash");
    let bash = Command::new("bash")
        .args(["--norc", "-c", OFFERED, "bash"])
        .arg(script)
        .args(words)
        .output()
        .unwrap();
    assert!(bash.status.success(), "{bash:?}");
    String::from_utf8(bash.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_of_other_programs() {
    if Command::new("bash").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no bash");
        return;
    }
    let folder = Folder::new();
    let script = folder.run(["completions", "bash"]);
    script.is_done();
    folder.put("binlogz.bash", &script.stdout);
    for (words, some) in [
        (&["binlogz", "sql", "--"][..], &["--schema", "--param", "--memory", "--login-path", "--quiet"][..]),
        (&["binlogz", "sql", "serve", "--"], &["--listen", "--tls-dir", "--accounts"]),
        (&["binlogz", "sql", "--format", ""], &["table", "csv", "parquet"]),
        (&["binlogz", "export", "--"], &["--partition", "--follow", "--at-once"]),
        (&["binlogz", "bench", ""], &["space", "point-select", "compare"]),
        (&["binlogz", "bench", "space", "--"], &["--sandbox", "--scale", "--yes-load-this-server", "--host"]),
        (&["binlogz", "demo", "--"], &["--once"]),
        (&["binlogz", "stats", "--"], &["--by", "--quiet"]),
    ] {
        let offered = offered(&folder, words);
        for option in some {
            assert!(offered.iter().any(|offered| offered == option), "{words:?}: {option} of {offered:?}");
        }
    }
    let serving = offered(&folder, &["binlogz", "sql", "serve", "--"]);
    assert!(!serving.iter().any(|option| option == "--quiet"), "{serving:?}");
    assert_eq!(offered(&folder, &["binlogz", "sql", "--par"]), ["--param"]);
}
