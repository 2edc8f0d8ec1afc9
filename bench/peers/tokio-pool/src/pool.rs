// SPDX-License-Identifier: Apache-2.0
//! A pool of devices as programs on tokio write it: a fair semaphore counts the free devices, flags
//! mark them, and a lease releases its device when it is dropped.

#![allow(dead_code)] // a real program would read these fields

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Clone, Copy)]
pub enum Vendor {
    Nvidia,
    Amd,
    Intel,
}

pub struct Device {
    pub vendor: Vendor,
    pub index: u32,
    pub name: String,
}

/// One device in a snapshot; it owns its name, so it outlives the pool.
pub struct Entry {
    pub vendor: Vendor,
    pub index: u32,
    pub name: String,
    pub leased: bool,
}

pub struct Pool {
    devices: Vec<Device>,
    free: Arc<Vec<AtomicBool>>,
    permits: Arc<Semaphore>,
    pending: Arc<AtomicUsize>,
}

pub struct Lease {
    pub vendor: Vendor,
    pub index: u32,
    slot: usize,
    free: Arc<Vec<AtomicBool>>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The permit is released after this, so its next owner finds the flag set.
        self.free[self.slot].store(true, Ordering::Release);
    }
}

/// Counts a claim as pending while it exists, also if it is cancelled while it waits.
struct Pending {
    counter: Arc<AtomicUsize>,
}

impl Pending {
    fn new(counter: Arc<AtomicUsize>) -> Self {
        counter.fetch_add(1, Ordering::AcqRel);
        Pending { counter }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Pool {
    pub fn new(devices: Vec<Device>) -> Self {
        let count = devices.len();
        Pool {
            devices,
            free: Arc::new((0..count).map(|_| AtomicBool::new(true)).collect()),
            permits: Arc::new(Semaphore::new(count)),
            pending: Arc::new(AtomicUsize::new(0)),
        }
    }

    pub fn pending(&self) -> usize {
        self.pending.load(Ordering::Acquire)
    }

    /// Claims a device, after all claims that already wait. Returns None if there are no devices.
    pub async fn claim(&self) -> Option<Lease> {
        if self.devices.is_empty() {
            return None;
        }
        let permit = {
            let _pending = Pending::new(Arc::clone(&self.pending));
            Arc::clone(&self.permits).acquire_owned().await.ok()?
        };
        Some(self.lease(permit))
    }

    /// Claims a device if one is free and no claim waits for it.
    pub fn try_claim(&self) -> Option<Lease> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        Some(self.lease(permit))
    }

    /// Takes the first free device. There is one for every permit.
    fn lease(&self, permit: OwnedSemaphorePermit) -> Lease {
        for (slot, free) in self.free.iter().enumerate() {
            if free
                .compare_exchange(true, false, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                return Lease {
                    vendor: self.devices[slot].vendor,
                    index: self.devices[slot].index,
                    slot,
                    free: Arc::clone(&self.free),
                    _permit: permit,
                };
            }
        }
        unreachable!("a permit without a free device");
    }

    /// Returns the state of every device, in slot order.
    pub fn snapshot(&self) -> Vec<Entry> {
        self.devices
            .iter()
            .zip(self.free.iter())
            .map(|(device, free)| Entry {
                vendor: device.vendor,
                index: device.index,
                name: device.name.clone(),
                leased: !free.load(Ordering::Acquire),
            })
            .collect()
    }
}
