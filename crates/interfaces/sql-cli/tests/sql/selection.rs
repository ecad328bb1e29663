//! Archives that are a selection of tables: questions to them are refused, and answers over their restored logs name what was left out.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_archive::chosen_tables::{TableChoice, select, selected_name};
use binlogz_archive::create::{CreateOutcome, Creator};
use binlogz_archive::restore;
use binlogz_archive::storage;
use binlogz_flow::ReadAt;

use crate::common::{ask, erased_archive, root};

/// An archive of the first sample with two of its four tables, and its log restored.
fn selection(folder: &Path) -> [PathBuf; 2] {
    let choice = TableChoice::new(&["employees.*".to_owned()], &["employees.salaries".to_owned()]).unwrap();
    let log: Arc<dyn ReadAt> = Arc::new(File::open(root().join("samples/plain/binlog.000001")).unwrap());
    let selected = select(&log, &choice, 2).unwrap();
    let archive = folder.join("selection");
    let storage = storage::at(&archive).unwrap();
    let mut told = |_: &CreateOutcome| {};
    let mut creator = Creator::new(&storage, 2, &mut told).unwrap();
    creator.selection(choice).unwrap();
    let name = selected_name("binlog.000001");
    creator.add_file(&name, selected.log, None).unwrap();
    let manifest = creator.finish().unwrap();
    let restored = folder.join(&name);
    let mut out = File::create(&restored).unwrap();
    restore::whole(&storage, &manifest.files[0], &mut out, 2).unwrap();
    [archive, restored]
}

const QUESTIONS: [&str; 4] = [
    "SELECT count(*) FROM transactions",
    "SELECT count(*) FROM changes",
    "SELECT count(*) FROM employees.employees",
    "SELECT count(*) FROM employees.salaries",
];

#[test]
fn a_selection_answers_no_question_and_its_restored_log_names_left_out_tables() {
    let folder = tempfile::tempdir().unwrap();
    let [archive, restored] = selection(folder.path());
    for place in [&archive, &archive.join("binlog-selected.000001")] {
        for question in QUESTIONS {
            let error = ask(question, std::slice::from_ref(place)).failure();
            assert!(
                error.contains("is a selection of tables (employees.*, without employees.salaries)"),
                "{error}"
            );
        }
    }
    for question in QUESTIONS {
        let ran = ask(question, std::slice::from_ref(&restored));
        // Of a chosen table, no row was left out.
        let is_whole = question == QUESTIONS[2];
        assert_eq!(ran.code == Some(0), is_whole, "{question}: {ran:?}");
        let is_named = ran.error.contains("event of employees.salaries: rows were left out");
        // The log has no table map of it.
        let is_unknown = ran.error.contains("there is no table employees.salaries");
        assert_eq!(is_named || is_unknown, !is_whole, "{question}: {ran:?}");
    }
    // Without the marks nothing is said.
    let whole = root().join("samples/plain/binlog.000001");
    assert_eq!(fs::metadata(&whole).unwrap().len(), fs::metadata(&restored).unwrap().len());
    ask(QUESTIONS[3], &[whole]).ok();
}

#[test]
fn a_question_to_an_erased_archive_is_answered_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let archive = erased_archive(folder.path());
    let ran = ask("SELECT count(*) FROM changes WHERE \"table\" = 'employees'", &[archive]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let note = "warning: 1 log is not byte for byte its server's: values of 1 row change of employees.employees were erased since ";
    assert_eq!(ran.error.matches(note).count(), 1, "{}", ran.error);
}
