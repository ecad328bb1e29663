//! `advise-exact exact|compress|whole LEVEL WORKERS FILE`: the work of `advise --exact` on a log at one level,
//! compressing the log for comparison, and the rest of its work (whole files). For profiles, and for counts of
//! instructions.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_advise::{Advice, Commits, ExactMeter};
use binlogz_flow::measure::measure;
use binlogz_flow::{Error, Input, ReadAt, Rewrite, Rewriter};
use binlogz_payload::{CompressOptions, CompressionLevel, ServerGeneration};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, what, level, workers, path] = args.as_slice() else {
        return Err("usage: advise-exact exact|compress|whole LEVEL WORKERS FILE".into());
    };
    let level = level.parse::<CompressionLevel>()?;
    let workers = workers.parse()?;
    let levels = [level];
    let mut advice = Advice::new(&levels, 1, ServerGeneration::default());
    match what.as_str() {
        "compress" => {
            let options = Rewrite::Compress(CompressOptions { level, ..CompressOptions::default() });
            let out = std::io::sink();
            Rewriter::new(options).workers(workers).run(Input::open(Path::new(path))?, out)?;
        }
        "whole" => {
            let file = std::fs::File::open(path)?;
            let size = file.metadata()?.len();
            let files: [(Arc<dyn ReadAt>, u64); 1] = [(Arc::new(file), size)];
            advice.measure_whole_files(&files, 1, workers, Instant::now() + Duration::from_secs(60))?;
        }
        _ => {
            let add = |piece| {
                advice.add_piece(&piece);
                Ok::<_, Error>(())
            };
            let commits = Arc::new(Commits::default());
            let meter = || Ok(ExactMeter::new(&levels, ServerGeneration::default(), &commits)?);
            measure(Input::open(Path::new(path))?, workers, &|| false, meter, add, &mut |_| {})?;
        }
    }
    Ok(())
}
