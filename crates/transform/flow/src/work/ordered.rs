//! Runs jobs on all cores and passes their results on in order.
//!
//! ```text
//! jobs (one thread, in order) → workers (any order) → sink (the caller's thread, in order)
//! ```
//!
//! At most `workers + IN_FLIGHT_SPARE` jobs are between source and sink, which bounds their total memory. The
//! first error in the order of the jobs ends the run; everything after it is dropped, so a run fails alike
//! with any number of workers.

use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};

/// Jobs under way beyond one for each worker: one being read, one being written, and one ready on each side of the
/// workers. So nothing waits for a thread that has no core at the moment (dump takes a few percent less time than with
/// two).
const IN_FLIGHT_SPARE: usize = 4;

/// Jobs under way at most, from source to sink, with this many workers.
pub(crate) fn in_flight_max(workers: usize) -> usize {
    if workers <= 1 { 1 } else { workers + IN_FLIGHT_SPARE }
}

/// Takes each job from `jobs`, has one of `workers` threads `work` on it, and passes the results to `sink` in
/// the order of the jobs. `new_worker` makes the state that a worker keeps from job to job, such as a
/// compression context. With one worker everything runs on the caller's thread.
///
/// `stop` is dropped as soon as the run is over: it ends what `jobs` may be waiting for.
///
/// # Errors
///
/// The first error of `jobs`, `new_worker`, `work` or `sink`, in the order of the jobs.
pub fn run<J, W, R, E>(
    workers: usize,
    mut jobs: impl FnMut() -> Option<Result<J, E>> + Send,
    stop: impl Sized,
    new_worker: impl Fn() -> Result<W, E> + Sync,
    work: impl Fn(&mut W, J) -> Result<R, E> + Sync,
    mut sink: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E>
where
    J: Send,
    R: Send,
    E: Send,
{
    if workers <= 1 {
        let mut worker = new_worker()?;
        while let Some(job) = jobs() {
            sink(work(&mut worker, job?)?)?;
        }
        return Ok(());
    }
    // A job and the place where its result is awaited.
    type Slot<J, R, E> = (J, Sender<Result<R, E>>);
    let (to_workers, from_reader) = bounded::<Slot<J, R, E>>(workers);
    // The sink holds one result while it writes; the queue holds the rest of what is under way.
    let (to_sink, in_order) = bounded::<Receiver<Result<R, E>>>(in_flight_max(workers) - 1);
    thread::scope(|scope| {
        let new_worker = &new_worker;
        let work = &work;
        for _ in 0..workers {
            let from_reader = from_reader.clone();
            scope.spawn(move || {
                let mut worker = None;
                for (job, answer) in from_reader {
                    let result = match worker.take().map_or_else(new_worker, Ok) {
                        Ok(ready) => work(worker.insert(ready), job),
                        Err(error) => Err(error),
                    };
                    // Nothing waits for the result once the run has failed.
                    let _ = answer.send(result);
                }
            });
        }
        drop(from_reader);
        scope.spawn(move || {
            while let Some(job) = jobs() {
                let (answer, awaited) = bounded(1);
                if to_sink.send(awaited).is_err() {
                    return;
                }
                let sent = match job {
                    Ok(job) => to_workers.send((job, answer)).is_ok(),
                    Err(error) => {
                        let _ = answer.send(Err(error));
                        false
                    }
                };
                if !sent {
                    return;
                }
            }
        });
        // Dropped before the scope waits for the reader.
        let _stop = stop;
        for awaited in in_order {
            // A slot without an answer is a worker that panicked: the scope passes its panic on.
            let Ok(result) = awaited.recv() else { break };
            sink(result?)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    fn numbers(count: usize) -> impl FnMut() -> Option<Result<usize, String>> + Send {
        let mut next = 0..count;
        move || next.next().map(Ok)
    }

    #[test]
    fn results_come_in_order_from_any_number_of_workers() {
        for workers in [1, 2, 7] {
            let mut got = Vec::new();
            let slow_evens = |(): &mut (), n: usize| {
                if n.is_multiple_of(2) {
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(n)
            };
            run(
                workers,
                numbers(50),
                (),
                || Ok(()),
                slow_evens,
                |n| {
                    got.push(n);
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(got, (0..50).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_error_in_order_wins_and_nothing_behind_it_is_seen() {
        for workers in [1, 4] {
            let mut got = Vec::new();
            let work = |(): &mut (), n: usize| match n {
                10 => {
                    thread::sleep(Duration::from_millis(5));
                    Err("ten".to_string())
                }
                11 => Err("eleven".to_string()),
                n => Ok(n),
            };
            let result = run(
                workers,
                numbers(1000),
                (),
                || Ok(()),
                work,
                |n| {
                    got.push(n);
                    Ok(())
                },
            );
            assert_eq!(result, Err("ten".to_string()));
            assert_eq!(got, (0..10).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_more_jobs_are_under_way_than_promised() {
        let under_way = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let mut next = 0..200;
        let jobs = || {
            next.next().map(|n| {
                most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                Ok::<_, String>(n)
            })
        };
        run(
            3,
            jobs,
            (),
            || Ok(()),
            |(), n| Ok(n),
            |_| {
                thread::sleep(Duration::from_micros(200));
                under_way.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            },
        )
        .unwrap();
        // One more than in flight: the job that the reader holds while it waits for room.
        assert!(most.load(Ordering::SeqCst) <= in_flight_max(3) + 1, "{most:?}");
    }

    #[test]
    fn a_failing_sink_ends_the_run() {
        let result = run(
            2,
            numbers(1000),
            (),
            || Ok(()),
            |(), n| Ok(n),
            |n| {
                if n == 3 { Err("closed".to_string()) } else { Ok(()) }
            },
        );
        assert_eq!(result, Err("closed".to_string()));
    }

    #[test]
    fn a_failed_run_does_not_wait_for_jobs_that_never_come() {
        let (stop, stopped) = bounded::<()>(0);
        let mut first = true;
        let jobs = || {
            if !std::mem::take(&mut first) {
                let _ = stopped.recv();
                return None;
            }
            Some(Ok(()))
        };
        let result = run(2, jobs, stop, || Ok(()), |(), ()| Err::<(), _>("damaged".to_string()), |()| Ok(()));
        assert_eq!(result, Err("damaged".to_string()));
    }
}
