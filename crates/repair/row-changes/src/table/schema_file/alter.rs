//! ALTER TABLE and RENAME TABLE in a schema file. We follow how an ALTER TABLE changes columns and keys; one whose effect
//! on them isn't known removes the table.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Word};

use super::{FileTable, ForeignKey, Key, Reader, SchemaFile};

/// First words of actions that leave columns and keys as they are.
const HARMLESS: [&str; 36] = [
    "ENGINE",
    "AUTO_INCREMENT",
    "COMMENT",
    "ALGORITHM",
    "LOCK",
    "DEFAULT",
    "CHARACTER",
    "CHARSET",
    "COLLATE",
    "ROW_FORMAT",
    "KEY_BLOCK_SIZE",
    "STATS_PERSISTENT",
    "STATS_AUTO_RECALC",
    "STATS_SAMPLE_PAGES",
    "CHECKSUM",
    "DELAY_KEY_WRITE",
    "MIN_ROWS",
    "MAX_ROWS",
    "AVG_ROW_LENGTH",
    "PACK_KEYS",
    "COMPRESSION",
    "ENCRYPTION",
    "CONVERT",
    "ENABLE",
    "DISABLE",
    "FORCE",
    "ORDER",
    "TABLESPACE",
    "INSERT_METHOD",
    "ALTER",
    "PARTITION",
    "WITH",
    "WITHOUT",
    "SECONDARY_ENGINE",
    "SECONDARY_LOAD",
    "CONNECTION",
];

/// Takes a statement after ALTER.
pub(super) fn alter(file: &mut SchemaFile, reader: &mut Reader, database: Option<&str>) {
    while reader.peek().is_some_and(|token| is_word(token, "ONLINE") || is_word(token, "IGNORE")) {
        reader.next += 1;
    }
    if !reader.takes(Keyword::TABLE) {
        return;
    }
    if reader.takes(Keyword::IF) {
        reader.takes(Keyword::EXISTS);
    }
    let Some((own, name)) = reader.table_name() else { return };
    let own = own.or_else(|| database.map(str::to_owned));
    let Some((key, index)) = file.place(own.as_deref(), &name) else { return };
    let Some(defined) = file.tables.get_mut(&key).filter(|defined| index < defined.len()) else { return };
    let (place, mut table) = defined.remove(index);
    let mut renamed = None;
    while reader.peek().is_some_and(|token| *token != Token::SemiColon) {
        let item = reader.item();
        reader.next += usize::from(matches!(reader.peek(), Some(Token::Comma | Token::RParen)));
        match action(&mut table, &item) {
            Some(Action::Done) => {}
            Some(Action::Rename(database, name)) => renamed = Some((database, name)),
            None => return,
        }
    }
    table.find_keys();
    let (place, name) = match renamed {
        Some((database, name)) => (database.or(place), name),
        None => (place, name),
    };
    table.name.clone_from(&name);
    file.tables.entry(name.to_lowercase()).or_default().push((place, table));
}

/// Takes a statement after RENAME.
pub(super) fn rename(file: &mut SchemaFile, reader: &mut Reader, database: Option<&str>) {
    if !reader.takes(Keyword::TABLE) {
        return;
    }
    while let Some((own, from)) = reader.table_name() {
        reader.takes(Keyword::TO);
        let Some((to_database, to)) = reader.table_name() else { return };
        let own = own.or_else(|| database.map(str::to_owned));
        if let Some((key, index)) = file.place(own.as_deref(), &from)
            && let Some(defined) = file.tables.get_mut(&key).filter(|defined| index < defined.len())
        {
            let (place, table) = defined.remove(index);
            let table = FileTable { name: to.clone(), ..table };
            file.tables.entry(to.to_lowercase()).or_default().push((to_database.or(place), table));
        }
        if reader.peek() != Some(&Token::Comma) {
            return;
        }
        reader.next += 1;
    }
}

/// The outcome of one action of an ALTER TABLE.
enum Action {
    Done,
    /// The table has another name: its database, where it is named, and its name.
    Rename(Option<String>, String),
}

/// Applies one action to a table; `None`: its effect is not known.
fn action(table: &mut FileTable, item: &[Token]) -> Option<Action> {
    let (first, rest) = match item {
        [] => return Some(Action::Done),
        [Token::Word(word), rest @ ..] if word.quote_style.is_none() => (word.value.to_uppercase(), rest),
        _ => return None,
    };
    match &*first {
        "ADD" => add(table, rest)?,
        "DROP" => drop_part(table, rest)?,
        "MODIFY" => {
            let rest = without(rest, &["COLUMN"]);
            let name = name_of(rest.first()?)?;
            redefine(table, &name, rest)?;
        }
        "CHANGE" => {
            let rest = without(rest, &["COLUMN"]);
            let (old, definition) = rest.split_first()?;
            redefine(table, &name_of(old)?, definition)?;
        }
        "RENAME" => return rename_part(table, rest),
        harmless if HARMLESS.contains(&harmless) => {}
        _ => return None,
    }
    Some(Action::Done)
}

fn add(table: &mut FileTable, rest: &[Token]) -> Option<()> {
    if let Some(key) = Key::of(rest) {
        table.foreign_keys.extend(ForeignKey::of(rest));
        table.defined.push(key);
        return Some(());
    }
    if is_word(rest.first()?, "PARTITION") {
        return Some(());
    }
    let rest = without(rest, &["COLUMN"]);
    let rest = without(without(without(rest, &["IF"]), &["NOT"]), &["EXISTS"]);
    if let [Token::LParen, definitions @ .., Token::RParen] = rest {
        let mut reader = Reader { tokens: definitions.to_vec(), next: 0 };
        while reader.peek().is_some() {
            let item = reader.item();
            let place = table.columns.len();
            match Key::of(&item) {
                Some(key) => table.defined.push(key),
                None => table.take_column(&item, place)?,
            }
            reader.next += 1;
        }
        return Some(());
    }
    let (definition, place) = placed(table, rest)?;
    let place = place.unwrap_or(table.columns.len());
    table.take_column(definition, place)
}

/// A column's definition without the place named after it, and that place.
fn placed<'t>(table: &FileTable, rest: &'t [Token]) -> Option<(&'t [Token], Option<usize>)> {
    match rest {
        [definition @ .., first] if definition.len() > 1 && is_word(first, "FIRST") => {
            Some((definition, Some(0)))
        }
        [definition @ .., after, name] if definition.len() > 1 && is_word(after, "AFTER") => {
            Some((definition, Some(table.position(&name_of(name)?)? + 1)))
        }
        _ => Some((rest, None)),
    }
}

/// Replaces a column's definition, which may move it.
fn redefine(table: &mut FileTable, old: &str, definition: &[Token]) -> Option<()> {
    let index = table.position(old)?;
    table.columns.remove(index);
    // The place counts without it.
    let (definition, place) = placed(table, definition)?;
    table.take_column(definition, place.unwrap_or(index))?;
    let new = name_of(definition.first()?)?;
    rename_in_keys(table, old, &new);
    Some(())
}

fn drop_part(table: &mut FileTable, rest: &[Token]) -> Option<()> {
    let [first, others @ ..] = rest else { return None };
    if is_word(first, "PRIMARY") {
        table.defined.retain(|key| !key.is_primary);
        return Some(());
    }
    if is_word(first, "KEY") || is_word(first, "INDEX") || is_word(first, "CONSTRAINT") {
        let name = name_of(others.last()?)?;
        let is_it = |key: &Key| {
            let of_columns = key.columns.first();
            key.name.as_ref().or(of_columns).is_some_and(|own| own.eq_ignore_ascii_case(&name))
        };
        table.defined.retain(|key| key.is_primary || !is_it(key));
        table.foreign_keys.retain(|key| !key.name.eq_ignore_ascii_case(&name));
        return Some(());
    }
    if is_word(first, "FOREIGN") {
        let name = name_of(others.last()?)?;
        table.foreign_keys.retain(|key| !key.name.eq_ignore_ascii_case(&name));
        return Some(());
    }
    if is_word(first, "CHECK") || is_word(first, "PARTITION") {
        return Some(());
    }
    let rest = without(without(without(rest, &["COLUMN"]), &["IF"]), &["EXISTS"]);
    let [name] = rest else { return None };
    let name = name_of(name)?;
    let index = table.position(&name)?;
    table.columns.remove(index);
    // The server takes the column out of keys; a unique key of fewer columns is another one.
    table.defined.retain(|key| !key.columns.iter().any(|column| column.eq_ignore_ascii_case(&name)));
    Some(())
}

fn rename_part(table: &mut FileTable, rest: &[Token]) -> Option<Action> {
    match rest {
        [what, from, to, new] if is_word(what, "COLUMN") && is_word(to, "TO") => {
            let (old, new) = (name_of(from)?, name_of(new)?);
            let index = table.position(&old)?;
            table.columns.get_mut(index)?.name.clone_from(&new);
            rename_in_keys(table, &old, &new);
            Some(Action::Done)
        }
        [what, from, to, new] if (is_word(what, "KEY") || is_word(what, "INDEX")) && is_word(to, "TO") => {
            let (old, new) = (name_of(from)?, name_of(new)?);
            for key in &mut table.defined {
                if key.name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(&old)) {
                    key.name = Some(new.clone());
                }
            }
            Some(Action::Done)
        }
        _ => {
            let rest = without(without(rest, &["TO"]), &["AS"]);
            match rest {
                [name] => Some(Action::Rename(None, name_of(name)?)),
                [database, Token::Period, name] => {
                    Some(Action::Rename(Some(name_of(database)?), name_of(name)?))
                }
                _ => None,
            }
        }
    }
}

fn rename_in_keys(table: &mut FileTable, old: &str, new: &str) {
    for column in table.defined.iter_mut().flat_map(|key| &mut key.columns) {
        if column.eq_ignore_ascii_case(old) {
            new.clone_into(column);
        }
    }
}

/// The tokens after an optional word.
fn without<'t>(tokens: &'t [Token], words: &[&str]) -> &'t [Token] {
    match tokens {
        [first, rest @ ..] if words.iter().any(|word| is_word(first, word)) => rest,
        _ => tokens,
    }
}

fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(text))
}

fn name_of(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.value.clone()),
        _ => None,
    }
}
