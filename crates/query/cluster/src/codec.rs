//! Plans as bytes: codecs for our tables and scans, and Ballista's own for everything else. Client, scheduler and
//! executors need the same codecs, so the programs that come with Ballista can't take part.

use std::sync::Arc;

use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use binlogz_query::{Site, functions, shipped};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, TableReference, plan_datafusion_err};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Extension, LogicalPlan, ScalarUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

/// Encodes and decodes the logical plans that a client sends to the scheduler.
#[derive(Debug, Default)]
pub struct LogicalCodec(BallistaLogicalExtensionCodec);

/// Encodes and decodes the physical plans that the scheduler sends to executors.
#[derive(Debug, Default)]
pub struct PhysicalCodec {
    ballista: BallistaPhysicalExtensionCodec,
    site: Arc<Site>,
}

impl PhysicalCodec {
    /// The codec of an executor, which reads its logs at `site`.
    pub fn new(site: Arc<Site>) -> Self {
        PhysicalCodec { site, ..PhysicalCodec::default() }
    }
}

/// One of our functions.
fn function(name: &str) -> Result<Arc<ScalarUDF>> {
    let found = functions().into_iter().find(|function| function.name() == name);
    found.map(Arc::new).ok_or_else(|| plan_datafusion_err!("there is no function {name}"))
}

impl LogicalExtensionCodec for LogicalCodec {
    fn try_decode(&self, bytes: &[u8], inputs: &[LogicalPlan], context: &TaskContext) -> Result<Extension> {
        self.0.try_decode(bytes, inputs, context)
    }

    fn try_encode(&self, node: &Extension, out: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode(node, out)
    }

    fn try_decode_table_provider(
        &self,
        bytes: &[u8],
        name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        match shipped::decode_table(bytes)? {
            Some(table) => Ok(table),
            None => self.0.try_decode_table_provider(bytes, name, schema, context),
        }
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match shipped::encode_table(table.as_ref())? {
            Some(bytes) => out.extend_from_slice(&bytes),
            None => self.0.try_encode_table_provider(name, table, out)?,
        }
        Ok(())
    }

    fn try_decode_file_format(
        &self,
        bytes: &[u8],
        context: &TaskContext,
    ) -> Result<Arc<dyn FileFormatFactory>> {
        self.0.try_decode_file_format(bytes, context)
    }

    fn try_encode_file_format(&self, out: &mut Vec<u8>, format: Arc<dyn FileFormatFactory>) -> Result<()> {
        self.0.try_encode_file_format(out, format)
    }

    fn try_decode_udf(&self, name: &str, _: &[u8]) -> Result<Arc<ScalarUDF>> {
        function(name)
    }
}

impl PhysicalExtensionCodec for PhysicalCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match shipped::decode_scan(bytes, inputs, &self.site)? {
            Some(scan) => Ok(scan),
            None => self.ballista.try_decode(bytes, inputs, context, converter),
        }
    }

    fn try_encode(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        out: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match shipped::encode_scan(plan.as_ref())? {
            Some(bytes) => out.extend_from_slice(&bytes),
            None => self.ballista.try_encode(plan, out, converter)?,
        }
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, _: &[u8]) -> Result<Arc<ScalarUDF>> {
        function(name)
    }
}
