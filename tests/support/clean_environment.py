# SPDX-License-Identifier: Apache-2.0
"""Removes environment variables of the user's shell that would affect the tests."""
import os

# Set by the build for the tests themselves.
KEPT = ("BERTH", "BERTH_SOURCE_ROOT", "BERTH_BUILD_ROOT", "BERTH_PROMISES_SEED", "BERTH_TEST_SCALE")

# A mask that the user has set would hide made-up devices.
MASKS = (
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "HIP_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "ONEAPI_DEVICE_SELECTOR",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    "ZE_ENABLE_PCI_ID_DEVICE_ORDER",
    "ZE_FLAT_DEVICE_HIERARCHY",
)


def clean():
    """Removes the user's pools, inventories and masks from this process's environment."""
    for name in list(os.environ):
        if name in MASKS or name.startswith("CUDA_MPS_"):
            del os.environ[name]
        elif (name == "BERTH" or name.startswith("BERTH_")) and name not in KEPT:
            del os.environ[name]
