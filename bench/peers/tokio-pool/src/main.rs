// SPDX-License-Identifier: Apache-2.0
//! Measures the pool of pool.rs; bench/local.c does the same with libberth.
//!
//!     tokio-pool MODE [COUNT]
//!
//! Prints one number: nanoseconds per operation, or bytes per waiter. The comments of the functions
//! describe the modes. Everything runs in one thread, on a runtime of one thread.

mod pool;

use pool::{Device, Lease, Pool, Vendor};
use std::arch::asm;
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

const DEVICES: usize = 8;
/// The printed number is the fastest of this many stretches, each about this long: short enough
/// that some stretches are not interrupted on a busy machine.
const STRETCHES: u32 = 100;
const STRETCH: Duration = Duration::from_millis(1);

fn new_pool() -> Arc<Pool> {
    // Names as long as real ones.
    let device = |index| Device {
        vendor: Vendor::Nvidia,
        index,
        name: format!("NVIDIA A100-SXM4-80GB {index}"),
    };
    Arc::new(Pool::new((0..DEVICES as u32).map(device).collect()))
}

fn new_runtime() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}

/// Makes the compiler assume that the value is used.
fn use_value<T>(value: &T) {
    unsafe { asm!("/* {0} */", in(reg) value as *const T, options(nostack, preserves_flags)) }
}

/// Returns the nanoseconds per operation. `run` does a given number and returns how long they took.
fn quickest(mut run: impl FnMut(u64) -> Duration) -> f64 {
    let mut count = 1000;
    loop {
        let time = run(count);
        if time >= STRETCH / 4 {
            count = (count as f64 * STRETCH.as_secs_f64() / time.as_secs_f64()) as u64;
            break;
        }
        count *= 4;
    }
    let stretch = |_| run(count).as_secs_f64() * 1e9 / count as f64;
    (0..STRETCHES).map(stretch).fold(f64::INFINITY, f64::min)
}

fn time_of(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

/// Claim and drop, all devices free.
fn claim() -> f64 {
    let (pool, runtime) = (new_pool(), new_runtime());
    quickest(|count| {
        runtime.block_on(async {
            let begin = Instant::now();
            for _ in 0..count {
                use_value(&pool.claim().await);
            }
            begin.elapsed()
        })
    })
}

/// Claim without waiting and drop, all devices free.
fn try_claim() -> f64 {
    let pool = new_pool();
    quickest(|count| time_of(|| (0..count).for_each(|_| use_value(&pool.try_claim()))))
}

/// Claim without waiting, no device free.
fn try_full() -> f64 {
    let pool = new_pool();
    let _held: Vec<Option<Lease>> = (0..DEVICES).map(|_| pool.try_claim()).collect();
    quickest(|count| time_of(|| (0..count).for_each(|_| use_value(&pool.try_claim()))))
}

fn snapshot() -> f64 {
    let pool = new_pool();
    let _held: Vec<Option<Lease>> = (0..DEVICES / 2).map(|_| pool.try_claim()).collect();
    quickest(|count| time_of(|| (0..count).for_each(|_| use_value(&pool.snapshot()))))
}

/// The progress of the hand-offs. All tasks run in one thread, so the atomics cost nothing extra.
struct Progress {
    done: AtomicU64,
    from: u64,
    to: u64,
    begin: Mutex<Option<Instant>>,
    time: Mutex<Option<Duration>>,
}

impl Progress {
    /// Counts one hand-off. Returns false after the last. Times number `from` to number `to`.
    fn step(&self) -> bool {
        let done = self.done.load(Ordering::Relaxed) + 1;
        self.done.store(done, Ordering::Relaxed);
        if done == self.from {
            *self.begin.lock().unwrap() = Some(Instant::now());
        } else if done == self.to {
            *self.time.lock().unwrap() = self.begin.lock().unwrap().map(|begin| begin.elapsed());
        }
        done < self.to
    }
}

/// A given number of tasks claim, yield and drop without end. There are more tasks than devices, so
/// every drop hands its device to a waiting task. The clock starts when each task has had a device
/// once.
fn handoff(tasks: u64) -> f64 {
    let (pool, runtime) = (new_pool(), new_runtime());
    quickest(|count| {
        let progress = Arc::new(Progress {
            done: AtomicU64::new(0),
            from: tasks,
            to: tasks + count,
            begin: Mutex::new(None),
            time: Mutex::new(None),
        });
        runtime.block_on(async {
            let start = |_| {
                let (pool, progress) = (Arc::clone(&pool), Arc::clone(&progress));
                tokio::spawn(async move {
                    loop {
                        let lease = pool.claim().await;
                        yield_now().await;
                        drop(lease);
                        if !progress.step() {
                            break;
                        }
                    }
                })
            };
            let handles: Vec<_> = (0..tasks).map(start).collect();
            for handle in handles {
                handle.await.expect("a task");
            }
        });
        let time = progress.time.lock().unwrap().take();
        time.expect("the clock was stopped")
    })
}

/// The memory that malloc has allocated, as glibc reports it; C's struct mallinfo2.
#[repr(C)]
struct MallocInformation {
    counts: [usize; 4],
    mapped: usize,
    more: [usize; 2],
    used: usize,
    rest: [usize; 2],
}

extern "C" {
    fn mallinfo2() -> MallocInformation;
}

fn bytes_in_use() -> usize {
    let information = unsafe { mallinfo2() };
    information.used + information.mapped
}

/// Returns the bytes of memory per waiter. A waiter is a spawned task that only waits for its
/// claim; its handle is dropped.
fn memory(waiters: usize) -> f64 {
    let (pool, runtime) = (new_pool(), new_runtime());
    let _held: Vec<Option<Lease>> = (0..DEVICES).map(|_| pool.try_claim()).collect();
    let before = bytes_in_use();
    runtime.block_on(async {
        for _ in 0..waiters {
            let pool = Arc::clone(&pool);
            tokio::spawn(async move { use_value(&pool.claim().await) });
        }
        while pool.pending() < waiters {
            yield_now().await;
        }
    });
    (bytes_in_use() - before) as f64 / waiters as f64
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = arguments.get(0).map(String::as_str);
    let count = arguments.get(1).and_then(|text| text.parse::<u64>().ok());
    let number = match (mode, count, arguments.len()) {
        (Some("claim"), _, 1) => claim(),
        (Some("try"), _, 1) => try_claim(),
        (Some("try-full"), _, 1) => try_full(),
        (Some("snapshot"), _, 1) => snapshot(),
        (Some("handoff"), Some(count), 2) if count > DEVICES as u64 => handoff(count),
        (Some("memory"), Some(count), 2) if count > 0 => memory(count as usize),
        _ => {
            eprintln!("usage: tokio-pool claim|try|try-full|snapshot|handoff TASKS|memory WAITERS");
            exit(2);
        }
    };
    println!("{:.3}", number);
}
