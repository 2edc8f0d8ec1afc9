# SPDX-License-Identifier: Apache-2.0
"""The names, kinds and labels of the metrics of berth web. Users may rely on them."""

DEVICE = ("UUID", "gpu", "model", "vendor")
METRICS = {
    "berth_devices": ("gauge", ()),
    "berth_device_leased": ("gauge", DEVICE),
    "berth_device_utilization_ratio": ("gauge", DEVICE),
    "berth_device_memory_used_bytes": ("gauge", DEVICE),
    "berth_device_memory_total_bytes": ("gauge", DEVICE),
    "berth_device_temperature_celsius": ("gauge", DEVICE),
    "berth_device_power_watts": ("gauge", DEVICE),
    "berth_leases": ("gauge", ()),
    "berth_claims_pending": ("gauge", ()),
    "berth_claims_total": ("counter", ("result",)),
    "berth_claim_wait_seconds": ("histogram", ()),
    "berth_lease_seconds": ("histogram", ()),
    "berth_build_info": ("gauge", ("version",)),
}


def sample_names():
    """Returns the names of all samples that a query may use."""
    names = set()
    for name, (kind, _) in METRICS.items():
        names |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"} if kind == "histogram" else {name}
    return names
