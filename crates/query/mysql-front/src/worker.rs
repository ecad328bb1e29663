//! A worker's half of the protocol: a statement in MySQL's dialect as definitions of columns and rows, all as the messages that
//! the client is sent.
//!
//! ```text
//! asked for a listing    planned: 0, it asks for something else, or the list is long
//!                        or 1 · number of columns 4 · messages: their number, definitions, rows
//! asked to prepare       planned: number of parameters 2 · number of columns 2 · messages: definitions of both
//! asked for rows         planned: messages: number of columns, definitions; then messages of rows
//!
//! messages: each after its size of 4 bytes
//! ```

use binlogz_binlog::put::PutFields;
use binlogz_query::{ParameterValues, Queries, Query, QueryRows, ReadStatement};
use binlogz_query_server::{
    AnswerFuture, AskedStatement, Blame, ROWS_PATIENCE, StatementRefusal, StatementWork, WorkerOutput,
    WorkerProtocol,
};
use datafusion::arrow::array::RecordBatch;
use futures_util::TryStreamExt;

use crate::dialect::{AnswerNames, SYSTEM_CATALOG, SYSTEM_SCHEMA, TranslatedStatement, translate};
use crate::errors::numbered;
use crate::rows::{MysqlColumns, RowForm, parameter_definition};
use crate::session::{AnswerPurpose, MysqlSession, put_message};
use crate::system::{self, SystemFacts, TableColumns};
use crate::values;
use crate::variables::FrontVariables;

/// The number of this protocol.
pub(crate) const MYSQL: u8 = b'm';

/// Bytes of rows in a message to the server; the last row may go beyond it.
const ROWS_SIZE: usize = 256 << 10;
/// Bytes of a listing that is sent at once; a larger one is a query like any other, whose client may take its time.
const LISTING_SIZE_MAX: usize = 1 << 20;

/// Answers statements that came by MySQL's protocol.
#[derive(Debug, Clone, Copy, Default)]
pub struct MysqlAnswers;

impl WorkerProtocol for MysqlAnswers {
    fn code(&self) -> u8 {
        MYSQL
    }

    fn answer<'a>(
        &'a self,
        queries: &'a Queries,
        work: StatementWork,
        asked: AskedStatement,
        output: &'a WorkerOutput,
    ) -> AnswerFuture<'a> {
        Box::pin(async move { answer(queries, work, asked, output).await.map_err(numbered) })
    }
}

/// A statement and the system tables that it reads.
struct MadeStatement {
    translated: TranslatedStatement,
    tables: Vec<(String, RecordBatch)>,
}

fn made(
    text: &str,
    session: &MysqlSession,
    names: &binlogz_query::Names,
) -> Result<MadeStatement, StatementRefusal> {
    let translated = translate(text, session, names)?;
    let columns = match translated.system.iter().any(TableColumns::are_told_by) {
        true => TableColumns::of(names)?,
        false => TableColumns::default(),
    };
    let variables = FrontVariables::of(session.changed.clone());
    let facts = SystemFacts { session, variables: &variables, tables: &columns };
    let tables = translated.system.iter().map(|name| {
        let batch = system::batch(name, &facts)?;
        Ok((format!("{}.{}", name.0, name.1), batch))
    });
    let tables = tables.collect::<Result<_, StatementRefusal>>()?;
    Ok(MadeStatement { translated, tables })
}

async fn answer(
    queries: &Queries,
    work: StatementWork,
    asked: AskedStatement,
    output: &WorkerOutput,
) -> Result<(), StatementRefusal> {
    let AskedStatement { session, statement, values, .. } = asked;
    let session = MysqlSession::decode(session)
        .ok_or_else(|| StatementRefusal::new(Blame::Program, "a session that can't be read"))?;
    let purpose = session.purpose;
    let made = queries.apart(move |names| Ok(made(&statement, &session, names))).await??;
    let MadeStatement { translated, tables } = made;
    let TranslatedStatement { statement, parameters, names, is_listing, .. } = translated;
    if purpose == AnswerPurpose::Listing && !is_listing {
        return output.planned(&[&[0]]).await;
    }
    if !tables.is_empty() {
        queries.add_tables((SYSTEM_CATALOG, SYSTEM_SCHEMA), tables)?;
    }
    let count = parameters.len();
    let query = queries.plan_made(move || Ok(ReadStatement::of_parsed(statement, parameters))).await?;
    match (purpose, work) {
        (AnswerPurpose::Prepare, _) => prepared(output, &query, names).await,
        (AnswerPurpose::Listing, _) => listing(queries, query, names, output).await,
        (AnswerPurpose::Text | AnswerPurpose::Binary, StatementWork::Plan) => {
            Err(StatementRefusal::new(Blame::Program, "rows that are only to be planned"))
        }
        (AnswerPurpose::Text, StatementWork::Run) => rows(queries, query, names, RowForm::Text, output).await,
        (AnswerPurpose::Binary, StatementWork::Run) => {
            let query = match count {
                0 => query,
                _ => queries.bound(query, values::decode(&values, count)?).await?,
            };
            rows(queries, query, names, RowForm::Binary, output).await
        }
    }
}

fn columns_of(query: &Query, names: &AnswerNames) -> MysqlColumns {
    let schema = query.schema();
    let own = schema.fields().iter().map(|field| field.name().clone()).collect();
    MysqlColumns::new(&schema, names.names(own))
}

/// The number of columns and their definitions, as messages.
fn put_columns(columns: &MysqlColumns, out: &mut Vec<u8>) {
    let each = columns.each();
    put_message(out, |out| out.put_lei(each.len() as u64));
    each.for_each(|definition| put_message(out, |out| out.put(&definition)));
}

async fn prepared(output: &WorkerOutput, query: &Query, names: AnswerNames) -> Result<(), StatementRefusal> {
    let parameters = query.parameters().fields().len();
    let columns = columns_of(query, &names);
    let each = columns.each();
    let counts = [parameters, each.len()].map(|count| u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
    let mut messages = Vec::new();
    for _ in 0..parameters {
        put_message(&mut messages, |out| out.put(&parameter_definition()));
    }
    each.for_each(|definition| put_message(&mut messages, |out| out.put(&definition)));
    output.planned(&[counts.as_flattened(), &messages]).await
}

async fn run(queries: &Queries, query: Query) -> Result<QueryRows, StatementRefusal> {
    Ok(queries.run(query, &ParameterValues::default(), ROWS_PATIENCE, ()).await?)
}

async fn listing(
    queries: &Queries,
    query: Query,
    names: AnswerNames,
    output: &WorkerOutput,
) -> Result<(), StatementRefusal> {
    let columns = columns_of(&query, &names);
    let mut messages = Vec::new();
    put_columns(&columns, &mut messages);
    let count = u32::try_from(columns.each().len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut batches = run(queries, query).await?;
    while let Some(batch) = batches.try_next().await? {
        let batch = columns.rows(&batch, RowForm::Text)?;
        for row in 0..batch.count() {
            put_row(&batch, row, &mut messages)?;
            if messages.len() > LISTING_SIZE_MAX {
                return output.planned(&[&[0]]).await;
            }
        }
    }
    output.planned(&[&[1], &count, &messages]).await
}

fn put_row(batch: &crate::rows::BatchRows, row: usize, out: &mut Vec<u8>) -> Result<(), StatementRefusal> {
    let mut put = Ok(());
    put_message(out, |out| put = batch.put(row, out));
    put
}

async fn rows(
    queries: &Queries,
    query: Query,
    names: AnswerNames,
    form: RowForm,
    output: &WorkerOutput,
) -> Result<(), StatementRefusal> {
    let columns = columns_of(&query, &names);
    let mut messages = Vec::new();
    put_columns(&columns, &mut messages);
    let mut batches = run(queries, query).await?;
    output.planned(&[&messages]).await?;
    messages.clear();
    while let Some(batch) = batches.try_next().await? {
        let batch = columns.rows(&batch, form)?;
        for row in 0..batch.count() {
            put_row(&batch, row, &mut messages)?;
            if messages.len() >= ROWS_SIZE {
                output.rows(&messages).await?;
                messages.clear();
            }
        }
        // What there is comes at once, also if more takes its time.
        if !messages.is_empty() {
            output.rows(&messages).await?;
            messages.clear();
        }
    }
    output.end().await
}
