//! Plans expressions that MySQL reads in another way than DataFusion: names of columns in images, which may be in any case
//! (`after.CamelCase`, which DataFusion takes for `after.camelcase`), and DIV. A name that isn't there is told with those
//! that are.

use binlogz_arrow::is_same_column;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Column, DFSchema, DataFusionError, Result, ScalarValue, TableReference};
use datafusion::functions::core::get_field;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, GetFieldAccess, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, lit,
};

use super::division;

/// Names that an error tells.
const TOLD_MAX: usize = 20;

/// Plans fields of images, and DIV.
#[derive(Debug)]
pub(crate) struct MysqlPlanner;

impl ExprPlanner for MysqlPlanner {
    fn plan_binary_op(
        &self,
        operation: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        Ok(division::planned(operation, schema))
    }

    /// `after.total`. DataFusion passes over an error of this function, so a name that isn't there becomes an expression that has
    /// no type.
    fn plan_compound_identifier(
        &self,
        field: &Field,
        qualifier: Option<&TableReference>,
        names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let mut expression = Expr::Column(Column::from((qualifier, field)));
        let mut above = field.clone();
        for name in names {
            let DataType::Struct(fields) = above.data_type() else {
                return Ok(PlannerResult::Original(Vec::new()));
            };
            let Some(found) = find(fields, name) else {
                let unknown = UnknownColumn::new(unknown_text(name, above.name(), fields));
                return Ok(PlannerResult::Planned(ScalarUDF::from(unknown).call(vec![expression])));
            };
            let found = found.clone();
            expression = field_of(expression, &found);
            above = found;
        }
        Ok(PlannerResult::Planned(expression))
    }

    /// `after['total']`.
    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let RawFieldAccessExpr { expr, field_access } = access;
        let name = match &field_access {
            GetFieldAccess::NamedStructField { name } => name.try_as_str().flatten(),
            GetFieldAccess::ListIndex { .. } | GetFieldAccess::ListRange { .. } => None,
        };
        let (Some(name), Ok(DataType::Struct(fields))) = (name, expr.get_type(schema)) else {
            return Ok(PlannerResult::Original(RawFieldAccessExpr { expr, field_access }));
        };
        match find(&fields, name) {
            Some(found) => Ok(PlannerResult::Planned(field_of(expr, found))),
            None => Err(DataFusionError::Plan(unknown_text(name, &name_of(&expr), &fields))),
        }
    }
}

fn find<'f>(fields: &'f Fields, name: &str) -> Option<&'f Field> {
    let exact = fields.iter().find(|field| field.name() == name);
    let found = exact.or_else(|| fields.iter().find(|field| is_same_column(field.name(), name)));
    found.map(AsRef::as_ref)
}

fn field_of(expression: Expr, field: &Field) -> Expr {
    get_field().call(vec![expression, lit(ScalarValue::from(field.name().clone()))])
}

fn name_of(expression: &Expr) -> String {
    match expression {
        Expr::Column(column) => column.name.clone(),
        other => other.schema_name().to_string(),
    }
}

/// The error of a name that isn't there.
fn unknown_text(name: &str, above: &str, fields: &Fields) -> String {
    let names: Vec<_> = fields.iter().take(TOLD_MAX).map(|field| field.name().as_str()).collect();
    let more = fields.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("there is no column {name} in {above}, expected one of {}{more}", names.join(", "))
}

/// A column that isn't there, as an expression: its type is the error.
#[derive(Debug, PartialEq, Eq, Hash)]
struct UnknownColumn {
    error: String,
    signature: Signature,
}

impl UnknownColumn {
    fn new(error: String) -> Self {
        UnknownColumn { error, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for UnknownColumn {
    fn name(&self) -> &str {
        "unknown_column"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Plan(self.error.clone()))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Plan(self.error.clone()))
    }
}
