#!/bin/sh
# Run a container on the devices of a lease, and print the device files that it sees. Needs podman, and once
#
#     sudo berth cdi --output /var/run/cdi
#
# which tells podman about the devices. Then run
#
#     berth run -n 2 -- sh examples/podman.sh
#
# IMAGE names another image than busybox. See docs/CONTAINERS.md.
set -eu

if [ -z "${BERTH_LEASE:-}" ]; then
    echo "podman.sh: there is no lease here: berth run -n 2 -- sh $0" >&2
    exit 2
fi

# One line for each device and each variable of the container; none contains a space.
arguments=$(berth cdi --arguments cdi)

# podman replaces this shell, so it gets the signals, and its exit code is the script's.
# shellcheck disable=SC2016,SC2086 # the container's shell expands the quoted variables; each line is a word
exec podman run --rm $arguments "${IMAGE:-busybox}" sh -c '
    echo "lease $BERTH_LEASE: $BERTH_DEVICES"
    for file in /dev/dri/* /dev/kfd /dev/nvidia*; do
        if test -c "$file"; then echo "$file"; fi
    done
'
