#!/bin/sh
# Runs a container on the devices of a lease, and prints what it sees of them. Needs podman, and once
#
#     sudo berth cdi --output /var/run/cdi
#
# by which podman knows the devices. Then
#
#     berth run -n 2 -- sh examples/podman.sh
#
# IMAGE names another image than busybox. docs/CONTAINERS.md says more.
set -eu

if [ -z "${BERTH_LEASE:-}" ]; then
    echo "podman.sh: there is no lease here: berth run -n 2 -- sh $0" >&2
    exit 2
fi

# A line for each device and each variable that the container is to have; none has a space in it.
arguments=$(berth cdi --arguments cdi)

# podman takes the place of this shell, so that it gets the signals, and its exit code is that of all.
# shellcheck disable=SC2016,SC2086 # the container's shell fills in what is quoted; the lines are words
exec podman run --rm $arguments "${IMAGE:-busybox}" sh -c '
    echo "lease $BERTH_LEASE: $BERTH_DEVICES"
    for file in /dev/dri/* /dev/kfd /dev/nvidia*; do
        if test -c "$file"; then echo "$file"; fi
    done
'
