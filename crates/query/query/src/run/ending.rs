//! Ends a query whose rows nobody wants any more, wherever it is.
//!
//! A task ends where it waits, or gives way to others. DataFusion's scans give way now and then, and so does what takes their batches, one by one.
//! A join makes many batches of one, and may look for millions of pairs without finding one to pass on. So
//!
//! ```text
//! an operator that may make more rows than it takes    gives way as a scan does, and is an error from then on
//! the condition of a join                              is an error from then on
//! a join without a condition that passes on no pairs   gets one that is always true
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, exec_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::expressions::lit;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, SchedulingType};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties};
use futures_util::StreamExt;

/// The end of a query.
#[derive(Debug, Clone, Default)]
pub(super) struct QueryEnd(Arc<AtomicBool>);

impl QueryEnd {
    /// Nobody wants its rows any more.
    pub(super) fn reach(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_reached(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Ends a query when it is dropped.
#[derive(Debug)]
pub(super) struct EndOnDrop(pub(super) QueryEnd);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.reach();
    }
}

/// The plan, so that it ends wherever it is.
///
/// # Errors
///
/// None that a statement causes.
pub(super) fn with_end(plan: Arc<dyn ExecutionPlan>, end: &QueryEnd) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| node_with_end(node, end)).data()
}

fn node_with_end(
    node: Arc<dyn ExecutionPlan>,
    end: &QueryEnd,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let join = join_with_end(&node, end)?;
    let is_other = join.is_some();
    let node = join.unwrap_or(node);
    Ok(match makes_more(&node) {
        true => Transformed::yes(Arc::new(EndingRows::new(node, end))),
        false => Transformed::new_transformed(node, is_other),
    })
}

/// The rows of an operator, up to the end of the query.
#[derive(Debug)]
struct EndingRows {
    /// The operator, which gives way after some batches.
    input: Arc<dyn ExecutionPlan>,
    end: QueryEnd,
}

impl EndingRows {
    fn new(operator: Arc<dyn ExecutionPlan>, end: &QueryEnd) -> Self {
        EndingRows { input: Arc::new(CooperativeExec::new(operator)), end: end.clone() }
    }
}

impl DisplayAs for EndingRows {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for EndingRows {
    fn name(&self) -> &str {
        "EndingRows"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(EndingRows { input, end: self.end.clone() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let end = self.end.clone();
        let rows = self.input.execute(partition, context)?;
        let schema = rows.schema();
        let rows = rows.map(move |batch| match end.is_reached() {
            true => stopped(),
            false => batch,
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

fn stopped<T>() -> Result<T> {
    exec_err!("the query was stopped")
}

/// Whether an operator may make several batches of one, without giving way.
fn makes_more(node: &Arc<dyn ExecutionPlan>) -> bool {
    let may_be_more = match node.cardinality_effect() {
        CardinalityEffect::Unknown | CardinalityEffect::GreaterEqual => true,
        CardinalityEffect::Equal | CardinalityEffect::LowerEqual => false,
    };
    let gives_way = node.properties().scheduling_type == SchedulingType::Cooperative;
    may_be_more && !gives_way && !node.children().is_empty()
}

/// A join whose condition tells of the end; `None`: it is none, or needs none.
fn join_with_end(node: &Arc<dyn ExecutionPlan>, end: &QueryEnd) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        let Some(filter) = filter_with_end(join.filter(), *join.join_type(), end) else { return Ok(None) };
        let join = NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter)).build()?;
        return Ok(Some(Arc::new(join)));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        let Some(filter) = filter_with_end(join.filter(), *join.join_type(), end) else { return Ok(None) };
        return HashJoinExecBuilder::from(join).with_filter(Some(filter)).build_exec().map(Some);
    }
    let Some(join) = node.downcast_ref::<SortMergeJoinExec>() else { return Ok(None) };
    // It doesn't look for pairs that it doesn't pass on.
    let Some(filter) = join.filter().as_ref() else { return Ok(None) };
    let join = SortMergeJoinExec::try_new(
        Arc::clone(&join.left),
        Arc::clone(&join.right),
        join.on.clone(),
        Some(ended_filter(filter, end)),
        join.join_type(),
        join.sort_options().to_vec(),
        join.null_equality(),
    )?;
    Ok(Some(Arc::new(join)))
}

fn filter_with_end(filter: Option<&JoinFilter>, join_type: JoinType, end: &QueryEnd) -> Option<JoinFilter> {
    if let Some(filter) = filter {
        return Some(ended_filter(filter, end));
    }
    match join_type {
        // Each pair is a row.
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => None,
        JoinType::LeftSemi
        | JoinType::RightSemi
        | JoinType::LeftAnti
        | JoinType::RightAnti
        | JoinType::LeftMark
        | JoinType::RightMark => {
            let always = JoinFilter::new(lit(true), Vec::new(), Arc::new(Schema::empty()));
            Some(ended_filter(&always, end))
        }
    }
}

fn ended_filter(filter: &JoinFilter, end: &QueryEnd) -> JoinFilter {
    let condition = EndingCondition { condition: Arc::clone(filter.expression()), end: end.clone() };
    JoinFilter::new(Arc::new(condition), filter.column_indices().to_vec(), Arc::clone(filter.schema()))
}

/// A condition, or an error once the query is to end.
#[derive(Debug)]
struct EndingCondition {
    condition: Arc<dyn PhysicalExpr>,
    end: QueryEnd,
}

impl PartialEq for EndingCondition {
    fn eq(&self, other: &Self) -> bool {
        *self.condition == *other.condition
    }
}

impl Eq for EndingCondition {}

impl Hash for EndingCondition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl fmt::Display for EndingCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl PhysicalExpr for EndingCondition {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.condition.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.condition.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        match self.end.is_reached() {
            true => stopped(),
            false => self.condition.evaluate(batch),
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let condition = children.pop().unwrap_or_else(|| Arc::clone(&self.condition));
        Ok(Arc::new(EndingCondition { condition, end: self.end.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}
