#!/bin/sh
# Show what a lease gives a program. Run it in a lease:
#
#     berth run -n 2 -- sh examples/show-lease.sh
if [ -n "${BERTH_DEVICES:-}" ]; then
    echo "lease $BERTH_LEASE: $BERTH_DEVICES"
else
    echo "no GPU: on the CPU"
fi
env | grep -E '^(BERTH|CUDA|NVIDIA|ROCR|HIP|ZE)_' | grep -v '^BERTH_SOCKET=' | LC_ALL=C sort
