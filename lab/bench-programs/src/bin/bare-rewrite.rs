//! `bare-rewrite compress LEVEL WORKERS IN OUT` or `bare-rewrite expand - WORKERS IN OUT`: the bare pipeline.

use std::fs::File;
use std::path::Path;

use binlogz_flow::{Input, Rewrite, Rewriter};
use binlogz_payload::{CompressOptions, CompressionLevel};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, verb, level, workers, input, output] = args.as_slice() else {
        return Err("usage: bare-rewrite compress|expand LEVEL WORKERS IN OUT".into());
    };
    let how = match verb.as_str() {
        "expand" => Rewrite::Expand,
        _ => Rewrite::Compress(CompressOptions {
            level: level.parse::<CompressionLevel>()?,
            ..CompressOptions::default()
        }),
    };
    let input = Input::open(Path::new(input))?;
    let out = File::create(output)?;
    let summary = Rewriter::new(how).workers(workers.parse()?).run(input, out)?;
    eprintln!("{summary:?}");
    Ok(())
}
