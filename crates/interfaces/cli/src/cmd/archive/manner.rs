//! Options of the commands that store segments: how a service keeps them.

use binlogz_archive::storage::Manner;
use clap::Args;

/// The options; without them the environment counts.
#[derive(Debug, Clone, Args)]
pub(super) struct MannerArgs {
    /// The storage class of segments in S3, such as STANDARD_IA or GLACIER_IR; else AWS_STORAGE_CLASS
    #[arg(long, value_name = "CLASS")]
    storage_class: Option<String>,
    /// How S3 encrypts what it stores: AES256, aws:kms or aws:kms:dsse; else AWS_SERVER_SIDE_ENCRYPTION, or as the bucket does
    #[arg(long, value_name = "METHOD", value_parser = ["AES256", "aws:kms", "aws:kms:dsse"])]
    sse: Option<String>,
    /// The key with which it does; else AWS_SSE_KMS_KEY_ID
    #[arg(long, value_name = "KEY", requires = "sse")]
    sse_kms_key_id: Option<String>,
}

impl MannerArgs {
    pub(super) fn manner(&self) -> Manner {
        let MannerArgs { storage_class, sse, sse_kms_key_id } = self.clone();
        Manner { storage_class, sse, sse_kms_key_id, limit: None }
    }
}
