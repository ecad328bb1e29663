//! Data in the shape of the public *employees* sample, from a fixed seed: multi-row INSERTs of about 1 MB.

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use jiff::ToSpan;
use jiff::civil::date;

use super::mersenne::Mersenne;
use crate::{IoContext, Result};

/// Employees at scale 1, as in the public sample.
pub(super) const EMPLOYEES: u32 = 300_024;

/// Makes schema `employees` with its four tables.
pub(super) const SCHEMA: &str = "\
DROP DATABASE IF EXISTS employees; CREATE DATABASE employees; USE employees;
CREATE TABLE employees(emp_no INT NOT NULL,birth_date DATE NOT NULL,first_name VARCHAR(14) NOT NULL,\
last_name VARCHAR(16) NOT NULL,gender ENUM('M','F') NOT NULL,hire_date DATE NOT NULL,PRIMARY KEY(emp_no));
CREATE TABLE dept_emp(emp_no INT NOT NULL,dept_no CHAR(4) NOT NULL,from_date DATE NOT NULL,to_date DATE NOT NULL,\
PRIMARY KEY(emp_no,dept_no));
CREATE TABLE titles(emp_no INT NOT NULL,title VARCHAR(50) NOT NULL,from_date DATE NOT NULL,to_date DATE,\
PRIMARY KEY(emp_no,title,from_date));
CREATE TABLE salaries(emp_no INT NOT NULL,salary INT NOT NULL,from_date DATE NOT NULL,to_date DATE NOT NULL,\
PRIMARY KEY(emp_no,from_date));
";

const SEED: u32 = 20_260_101;
/// A row's characters count towards this; then its INSERT ends.
const INSERT_BYTES: usize = 1_000_000;
const FOREVER: &str = "9999-01-01";
const SYLLABLES: &str = "ba be bi bo bu da de di do fa ge gi ha ka ke ki ko la le li lo ma me mi mo na ne no pa \
                         pe ra re ri ro sa se shi so su ta te to va ve wa ya yo za zi";
const TITLES: [&str; 7] = [
    "Senior Engineer",
    "Staff",
    "Engineer",
    "Senior Staff",
    "Assistant Engineer",
    "Technique Leader",
    "Manager",
];

/// Writes `employees.sql`, `dept_emp.sql`, `titles.sql` and `salaries.sql` for that many employees into `dir`;
/// gives them in the order they are to be loaded.
pub(super) fn generate(employee_count: u32, dir: &Path) -> Result<[PathBuf; 4]> {
    let names = ["employees", "dept_emp", "titles", "salaries"];
    let paths = names.map(|name| dir.join(format!("{name}.sql")));
    let [mut employees, mut dept_emp, mut titles, mut salaries] = [
        Table::create(names[0], &paths[0])?,
        Table::create(names[1], &paths[1])?,
        Table::create(names[2], &paths[2])?,
        Table::create(names[3], &paths[3])?,
    ];
    let mut random = Mersenne::new(SEED);
    let first_names: Vec<String> = (0..1275).map(|_| name(&mut random, 4)).collect();
    let last_names: Vec<String> = (0..1637).map(|_| name(&mut random, 5)).collect();

    for emp_no in 10_001..10_001 + employee_count {
        let birth_date = date(1952, 2, 1) + random.between(0, 4748).days();
        let hire_date = date(1985, 1, 1) + (random.triangular(0.0, 5500.0, 400.0) as i64).days();
        let first_name = random.choice(&first_names);
        let last_name = random.choice(&last_names);
        let gender = if random.unit() < 0.6 { 'M' } else { 'F' };
        employees.put(format_args!(
            "({emp_no},'{birth_date}','{first_name}','{last_name}','{gender}','{hire_date}')"
        ))?;

        let mut starting_salaries = [40_000; 8];
        starting_salaries[3..].fill_with(|| random.between(40_000, 90_000));
        let mut salary = *random.choice(&starting_salaries);
        let mut from_date = hire_date;
        let years_until_2002 = i64::from((date(2002, 8, 1) - hire_date).get_days()) / 365;
        let count = random.between(1, 18).min(years_until_2002 + 1);
        for number in 1..=count {
            let next = from_date + 365.days();
            let current = number == count && random.unit() < 0.8;
            let to_date = if current { FOREVER.to_owned() } else { next.to_string() };
            salaries.put(format_args!("({emp_no},{salary},'{from_date}','{to_date}')"))?;
            from_date = next;
            salary += random.between(-800, 5000);
        }

        let title = random.choice(&TITLES);
        titles.put(format_args!("({emp_no},'{title}','{hire_date}','{FOREVER}')"))?;
        if random.unit() < 0.48 {
            let promotion = hire_date + random.between(1000, 3000).days();
            titles.put(format_args!("({emp_no},'Senior {title:.20}','{promotion}','{FOREVER}')"))?;
        }
        let department = random.between(1, 9);
        dept_emp.put(format_args!("({emp_no},'d{department:03}','{hire_date}','{FOREVER}')"))?;
        if random.unit() < 0.1 {
            let move_date = hire_date + random.between(300, 3000).days();
            let next = department % 9 + 1;
            dept_emp.put(format_args!("({emp_no},'d{next:03}','{move_date}','{FOREVER}')"))?;
        }
    }
    for table in [employees, dept_emp, titles, salaries] {
        table.finish()?;
    }
    Ok(paths)
}

/// Two to `syllables_max` syllables, the first letter a capital.
fn name(random: &mut Mersenne, syllables_max: i64) -> String {
    let syllables: Vec<&str> = SYLLABLES.split_whitespace().collect();
    let count = random.between(2, syllables_max);
    let mut name: String = (0..count).map(|_| *random.choice(&syllables)).collect();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    name
}

/// The INSERTs of one table.
struct Table {
    name: &'static str,
    path: PathBuf,
    out: BufWriter<File>,
    /// Rows of the INSERT that is being made, joined by a comma and a line break.
    rows: String,
}

impl Table {
    fn create(name: &'static str, path: &Path) -> Result<Table> {
        let out = BufWriter::new(File::create(path).at("create", path)?);
        Ok(Table { name, path: path.to_owned(), out, rows: String::new() })
    }

    fn put(&mut self, row: fmt::Arguments<'_>) -> Result<()> {
        self.rows.push_str(if self.rows.is_empty() { "" } else { ",\n" });
        self.rows.push_str(&row.to_string());
        if self.rows.len() + 2 > INSERT_BYTES {
            self.end_insert()?;
        }
        Ok(())
    }

    fn end_insert(&mut self) -> Result<()> {
        writeln!(self.out, "INSERT INTO `{}` VALUES {};", self.name, self.rows).at("write", &self.path)?;
        self.rows.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.end_insert()?;
        }
        self.out.flush().at("write", &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::generate;

    #[test]
    fn data_is_the_same_as_ever() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let paths = generate(1000, dir.path()).expect("generated");
        let read = |path| std::fs::read_to_string(path).expect("generated");
        let sizes = paths.each_ref().map(|path| read(path).len());
        assert_eq!(sizes, [58_226, 45_978, 76_860, 339_913]);
        let salaries = read(&paths[3]);
        assert!(salaries.ends_with(",\n(11000,90244,'1999-03-07','9999-01-01');\n"));
    }
}
