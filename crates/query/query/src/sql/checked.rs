//! Whole numbers that don't wrap: `+`, `-`, `*` and `sum` give the right number, or an error where its type has no room for it.
//!
//! ```text
//! up to 32 bits       as BIGINT, which has room for it: INT UNSIGNED - INT UNSIGNED may be below 0
//! BIGINT              as DECIMAL(20), then back to BIGINT, which tells what it has no room for
//! BIGINT UNSIGNED     as DECIMAL(20); so it stays, where it may be below 0
//! sum                 of integers as DECIMAL(38), of DECIMAL above 28 digits as one of 76 digits, then back
//! ```
//!
//! DataFusion itself computes in the type of the operands and drops the digits that don't fit. `/` and `%` are MySQL's too
//! ([`division`]).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, not_impl_err};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, merge_schema};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, BinaryExpr, Cast, Documentation, EmitTo, Expr,
    ExprSchemable, GroupsAccumulator, LogicalPlan, Operator, ReversedUDAF, SetMonotonicity, Signature, lit,
};
use datafusion::optimizer::{Analyzer, AnalyzerRule};

use super::division;

/// Has room for every integer of 64 bits.
const INTEGERS: DataType = DataType::Decimal128(20, 0);
/// Has room for the sum of all integers that there will ever be.
const SUMS: DataType = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);
/// The digits of the widest 128-bit decimal: a sum of such values may need more than 128 bits.
const DECIMAL_MAX: u8 = DECIMAL128_MAX_PRECISION;

/// An error, and not NULL, for a number that a type has no room for.
const STRICT: CastOptions<'static> =
    CastOptions { safe: false, format_options: datafusion::arrow::util::display::FormatOptions::new() };

/// A column in another type; what doesn't fit is an error.
pub(crate) fn strict(column: &dyn Array, kind: &DataType) -> Result<ArrayRef> {
    cast_with_options(column, kind, &STRICT).map_err(|_| beyond(kind))
}

fn beyond(kind: &DataType) -> datafusion::common::DataFusionError {
    exec_datafusion_err!("a number is beyond {kind}")
}

/// DataFusion's rules for plans, and ours.
pub(crate) fn rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    // Before the operands get one type.
    let place = rules.iter().position(|rule| rule.name() == "type_coercion").unwrap_or(rules.len());
    rules.insert(place, Arc::new(CheckedArithmetic));
    rules
}

/// Aggregates in the places of DataFusion's.
pub fn aggregates() -> [AggregateUDF; 1] {
    [AggregateUDF::from(CheckedSum(Sum::new()))]
}

/// Computes with integers in types that have room for the result.
#[derive(Debug)]
struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let widened = plan.transform_up_with_subqueries(|plan| {
            let mut schema = merge_schema(&plan.inputs());
            if let LogicalPlan::TableScan(scan) = &plan {
                schema.merge(&scan.projected_schema);
            }
            let names = NamePreserver::new(&plan);
            let rewritten = plan.map_expressions(|expression| {
                let name = names.save(&expression);
                let widened = expression.transform_up(|expression| {
                    let kind = |operand: &Expr| operand.get_type(&schema).ok();
                    Ok(match expression {
                        Expr::BinaryExpr(operation)
                            if matches!(operation.op, Operator::Divide | Operator::Modulo) =>
                        {
                            let kinds = (kind(&operation.left), kind(&operation.right));
                            division::checked(operation, kinds)
                        }
                        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                            match widened(kind(&left), op, kind(&right)) {
                                Some(types) => Transformed::yes(types.expression(*left, op, *right)),
                                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
                            }
                        }
                        Expr::Negative(operand) => {
                            match widened(Some(DataType::Int64), Operator::Minus, kind(&operand)) {
                                Some(types) => {
                                    Transformed::yes(types.expression(lit(0_i64), Operator::Minus, *operand))
                                }
                                None => Transformed::no(Expr::Negative(operand)),
                            }
                        }
                        other => Transformed::no(other),
                    })
                })?;
                Ok(widened.update_data(|expression| name.restore(expression)))
            })?;
            match rewritten.transformed {
                true => rewritten.map_data(LogicalPlan::recompute_schema),
                false => Ok(rewritten),
            }
        })?;
        Ok(widened.data)
    }

    fn name(&self) -> &str {
        "checked_arithmetic"
    }
}

/// How an operation is computed.
struct WidenedOperation {
    operands: DataType,
    result: Option<DataType>,
}

impl WidenedOperation {
    fn expression(self, left: Expr, op: Operator, right: Expr) -> Expr {
        let as_operand =
            |operand: Expr| Box::new(Expr::Cast(Cast::new(Box::new(operand), self.operands.clone())));
        let computed = Expr::BinaryExpr(BinaryExpr { left: as_operand(left), op, right: as_operand(right) });
        match self.result {
            Some(kind) => Expr::Cast(Cast::new(Box::new(computed), kind)),
            None => computed,
        }
    }
}

/// How integers are computed; `None`: they are none, or the operation can't go beyond them.
fn widened(left: Option<DataType>, op: Operator, right: Option<DataType>) -> Option<WidenedOperation> {
    let left = left?;
    let right = right?;
    let bits = value_bits(&left)?;
    let other_bits = value_bits(&right)?;
    // Without the sign.
    let needed = match op {
        Operator::Plus | Operator::Minus => bits.max(other_bits) + 1,
        Operator::Multiply => bits + other_bits,
        _ => return None,
    };
    let has_large = [&left, &right].contains(&&DataType::UInt64);
    let is_positive = op != Operator::Minus && left.is_unsigned_integer() && right.is_unsigned_integer();
    Some(match needed {
        ..=63 => WidenedOperation { operands: DataType::Int64, result: None },
        _ if is_positive => WidenedOperation { operands: INTEGERS, result: Some(DataType::UInt64) },
        _ if has_large => WidenedOperation { operands: INTEGERS, result: None },
        _ => WidenedOperation { operands: INTEGERS, result: Some(DataType::Int64) },
    })
}

/// Bits that an integer's value has.
fn value_bits(kind: &DataType) -> Option<u32> {
    Some(match kind {
        DataType::Int8 => 7,
        DataType::UInt8 => 8,
        DataType::Int16 => 15,
        DataType::UInt16 => 16,
        DataType::Int32 => 31,
        DataType::UInt32 => 32,
        DataType::Int64 => 63,
        DataType::UInt64 => 64,
        _ => return None,
    })
}

/// DataFusion's `sum`, in a type that has room for it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSum(Sum);

/// The type in which values of a sum are added; `None`: its own has room.
fn wide(result: &DataType) -> Option<DataType> {
    match result {
        DataType::Int64 | DataType::UInt64 => Some(SUMS),
        DataType::Decimal128(DECIMAL_MAX, scale) => {
            Some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale))
        }
        _ => None,
    }
}

/// The field of a result, in another type.
fn retyped(field: &FieldRef, kind: &DataType) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(kind.clone()))
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.0.return_type(kinds)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let result = args.return_type().clone();
        let Some(wide) = wide(&result) else { return self.0.accumulator(args) };
        let args = AccumulatorArgs { return_field: retyped(&args.return_field, &wide), ..args };
        Ok(Box::new(CheckedAccumulator { inner: self.0.accumulator(args)?, wide, result }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let result = args.return_type().clone();
        if args.is_distinct {
            return not_impl_err!("sum(DISTINCT …) over a window that moves");
        }
        let Some(wide) = wide(&result) else { return self.0.create_sliding_accumulator(args) };
        let args = AccumulatorArgs { return_field: retyped(&args.return_field, &wide), ..args };
        Ok(Box::new(CheckedAccumulator { inner: self.0.create_sliding_accumulator(args)?, wide, result }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        match wide(args.return_type()) {
            Some(wide) => {
                let return_field = retyped(&args.return_field, &wide);
                self.0.state_fields(StateFieldsArgs { return_field, ..args })
            }
            None => self.0.state_fields(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let result = args.return_type().clone();
        let Some(wide) = wide(&result) else { return self.0.create_groups_accumulator(args) };
        let args = AccumulatorArgs { return_field: retyped(&args.return_field, &wide), ..args };
        Ok(Box::new(CheckedGroups { inner: self.0.create_groups_accumulator(args)?, wide, result }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.0.order_sensitivity()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }

    fn set_monotonicity(&self, kind: &DataType) -> SetMonotonicity {
        self.0.set_monotonicity(kind)
    }
}

/// A sum in a type that has room for it.
#[derive(Debug)]
struct CheckedAccumulator {
    inner: Box<dyn Accumulator>,
    wide: DataType,
    result: DataType,
}

fn all_strict(values: &[ArrayRef], kind: &DataType) -> Result<Vec<ArrayRef>> {
    values.iter().map(|values| strict(values, kind)).collect()
}

impl Accumulator for CheckedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&all_strict(values, &self.wide)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.inner.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&strict(&sum, &self.result)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&all_strict(values, &self.wide)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

/// Sums of groups, in a type that has room for them.
struct CheckedGroups {
    inner: Box<dyn GroupsAccumulator>,
    wide: DataType,
    result: DataType,
}

impl GroupsAccumulator for CheckedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.inner.update_batch(&all_strict(values, &self.wide)?, groups, filter, count)
    }

    fn evaluate(&mut self, emitted: EmitTo) -> Result<ArrayRef> {
        strict(&self.inner.evaluate(emitted)?, &self.result)
    }

    fn state(&mut self, emitted: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emitted)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.inner.merge_batch(values, groups, count)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(&all_strict(values, &self.wide)?, filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}
