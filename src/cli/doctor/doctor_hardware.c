/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of the hardware: drivers, device files, and the probe that reads both.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/system/file.h"
#include "base/system/program.h"
#include "base/text/quantity.h"
#include "cli/doctor/doctor_checks.h"

enum { ATTRIBUTE_MAX = 64, DISPLAY_CLASS = 0x03 };

/* The vendors of GPUs, with the kernel drivers that berth and the vendor's libraries work with. */
static const struct gpu_vendor {
    const char *name;
    unsigned long pci;
    const char *drivers[3];
    const char *load;
    const char *library; /* the library that needs the driver */
} vendors[] = {
    {"NVIDIA", 0x10de, {"nvidia"}, "nvidia", "CUDA"},
    {"AMD", 0x1002, {"amdgpu"}, "amdgpu", "ROCm"},
    {"Intel", 0x8086, {"i915", "xe"}, "xe", "Level Zero"},
};

/* Reads a number in a file of a PCI device. Returns 0 if there is none. */
static unsigned long read_number(const char *directory, const char *name)
{
    struct text content = {0};
    unsigned long number = 0;
    char path[PATH_MAX + NAME_MAX];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    if (file_read(path, ATTRIBUTE_MAX, &content, NULL) == 0)
        number = strtoul(text_string(&content), NULL, 16);
    text_finish(&content);
    return number;
}

/* Writes the name of the device's kernel driver, or "". */
static void read_driver(const char *directory, char *name, size_t size)
{
    char path[PATH_MAX + NAME_MAX];
    char target[PATH_MAX];
    ssize_t length;

    snprintf(path, sizeof(path), "%s/driver", directory);
    length = readlink(path, target, sizeof(target) - 1);
    target[length < 0 ? 0 : length] = '\0';
    snprintf(name, size, "%s", strrchr(target, '/') == NULL ? "" : strrchr(target, '/') + 1);
}

static const struct gpu_vendor *find_vendor(const char *directory)
{
    unsigned long number = read_number(directory, "vendor");

    if (read_number(directory, "class") >> 16 != DISPLAY_CLASS)
        return NULL;
    for (size_t i = 0; i < COUNT(vendors); i++) {
        if (vendors[i].pci == number)
            return &vendors[i];
    }
    return NULL;
}

static bool is_usual_driver(const struct gpu_vendor *vendor, const char *driver)
{
    for (size_t i = 0; i < COUNT(vendor->drivers); i++) {
        if (vendor->drivers[i] != NULL && strcmp(vendor->drivers[i], driver) == 0)
            return true;
    }
    return false;
}

/* Checks the driver of one GPU. Returns whether it is good. */
static bool check_driver(const struct gpu_vendor *vendor, const char *address, const char *driver,
                         struct doctor_report *report)
{
    if (is_usual_driver(vendor, driver))
        return true;
    if (*driver == '\0') {
        doctor_report_add(report, DOCTOR_PROBLEM, "%s GPU %s has no driver", vendor->name, address);
        doctor_report_advise(report, "install %s's driver, or load it: modprobe %s", vendor->name,
                             vendor->load);
    } else if (strcmp(driver, "vfio-pci") == 0) {
        doctor_report_add(report, DOCTOR_OK, "%s GPU %s is reserved for virtual machines",
                          vendor->name, address);
    } else {
        doctor_report_add(report, DOCTOR_WARNING, "%s GPU %s uses the driver %s", vendor->name,
                          address, driver);
        doctor_report_advise(report, "%s needs the driver %s", vendor->library, vendor->load);
    }
    return false;
}

/* Writes the version of the vendor's kernel driver in parentheses, or "". */
static void read_version(const struct doctor_facts *facts, const struct gpu_vendor *vendor,
                         char *version, size_t size)
{
    struct text content = {0};
    char path[PATH_MAX];

    *version = '\0';
    snprintf(path, sizeof(path), "%s/sys/module/%s/version", facts->sysroot, vendor->drivers[0]);
    if (file_read(path, ATTRIBUTE_MAX, &content, NULL) == 0 && content.length > 1) {
        content.bytes[strcspn(content.bytes, "\n")] = '\0';
        snprintf(version, size, " (%s)", content.bytes);
    }
    text_finish(&content);
}

void doctor_hardware_check_drivers(const struct doctor_facts *facts, struct doctor_report *report)
{
    unsigned good[COUNT(vendors)] = {0};
    struct dirent *entry;
    char path[PATH_MAX];
    unsigned found = 0;
    DIR *directory;

    if (facts->inventory != NULL) {
        doctor_report_add(report, DOCTOR_OK, "not needed: the devices come from an inventory file");
        return;
    }
    snprintf(path, sizeof(path), "%s/sys/bus/pci/devices", facts->sysroot);
    directory = opendir(path);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        const struct gpu_vendor *vendor;
        char driver[NAME_MAX + 1];

        snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s", facts->sysroot, entry->d_name);
        vendor = entry->d_name[0] == '.' ? NULL : find_vendor(path);
        if (vendor == NULL)
            continue;
        found++;
        read_driver(path, driver, sizeof(driver));
        good[vendor - vendors] += check_driver(vendor, entry->d_name, driver, report);
    }
    if (directory != NULL)
        closedir(directory);
    for (size_t i = 0; i < COUNT(vendors); i++) {
        char version[ATTRIBUTE_MAX + 4];

        if (good[i] == 0)
            continue;
        read_version(facts, &vendors[i], version, sizeof(version));
        doctor_report_add(report, DOCTOR_OK, "%u %s GPU%s with a driver%s", good[i],
                          vendors[i].name, good[i] == 1 ? "" : "s", version);
    }
    if (found == 0) {
        doctor_report_add(report, DOCTOR_WARNING, "no GPU on the PCI bus");
        doctor_report_advise(report, "if there should be one, see lspci and the settings of the "
                                     "firmware or the hypervisor");
    }
}

static void list_sick_devices(const struct doctor_facts *facts, struct doctor_report *report)
{
    const struct device *device;

    vector_for_each (device, &facts->machine.machine.devices) {
        if (device->health != HEALTH_SICK)
            continue;
        doctor_report_add(
            report, DOCTOR_PROBLEM, "%s is sick: %s", device_id_format(device->id).text,
            device->health_reason == NULL ? "no reason is known" : device->health_reason);
        if (facts->inventory != NULL)
            doctor_report_advise(report, "the file %s says so: change its `health`",
                                 facts->inventory);
        else
            doctor_report_advise(report,
                                 "see the kernel's log (dmesg), and reset the GPU or reboot");
    }
}

/* Returns the remedy for an error that the environment or an option has caused; NULL: none has. */
static const char *find_wrong_setting(const struct doctor_facts *facts)
{
    const char *named = getenv("BERTH_INVENTORY");

    if (facts->inventory != NULL)
        return named != NULL && facts->inventory == named
                   ? "correct the file or BERTH_INVENTORY, or unset BERTH_INVENTORY"
                   : "correct the file, or name another one with --inventory";
    return facts->probe_error.code == BERTH_ERROR_IO ||
                   facts->probe_error.code == BERTH_ERROR_MEMORY
               ? NULL
               : "correct BERTH_PROBE_DEADLINE, or unset it";
}

/* Reports devices that cannot be read: by the inventory file, or a probe that cannot be executed or
 * has no answer. */
static void report_failure(const struct doctor_facts *facts, struct doctor_report *report)
{
    const char *setting = find_wrong_setting(facts);
    const char *named = getenv("BERTH_PROBE");
    const char *remedy = "run: berth devices --deadline 1m, and see the kernel's log";
    char path[PATH_MAX];

    if (setting != NULL) {
        remedy = setting;
    } else if (named != NULL && *named != '\0') {
        if (access(named, X_OK) < 0)
            remedy = "correct BERTH_PROBE, or unset it";
    } else {
        program_find("berth-probe", path, sizeof(path));
        if (access(path, X_OK) < 0)
            remedy = "install berth completely";
    }
    doctor_report_add_error(report, "", &facts->probe_error, remedy);
}

void doctor_hardware_check_probe(const struct doctor_facts *facts, struct doctor_report *report)
{
    const struct problem *problem;
    size_t count = facts->machine.machine.devices.count;

    if (facts->probe_error.code != 0) {
        report_failure(facts, report);
        return;
    }
    vector_for_each (problem, &facts->machine.problems) {
        if (machine_report_has_problem(&facts->view.snapshot.problems, problem->backend,
                                       problem->message))
            continue; /* shown for the pool */
        doctor_report_add(report, DOCTOR_WARNING, "%s: %s", problem->backend, problem->message);
        doctor_report_advise(report, "see berth devices, and the kernel's log (dmesg)");
    }
    list_sick_devices(facts, report);
    if (facts->inventory == NULL && facts->probe_time > facts->probe_deadline / 2) {
        doctor_report_add(report, DOCTOR_WARNING, "berth-probe took %s of at most %s",
                          quantity_format_duration(facts->probe_time).text,
                          quantity_format_duration(facts->probe_deadline).text);
        doctor_report_advise(report, "set BERTH_PROBE_DEADLINE to more in the daemon's "
                                     "environment; nvidia-persistenced makes NVIDIA's driver "
                                     "answer faster");
    }
    doctor_report_add(report, count == 0 ? DOCTOR_WARNING : DOCTOR_OK, "%zu device%s found", count,
                      count == 1 ? "" : "s");
    if (count == 0)
        doctor_report_advise(report, facts->inventory != NULL
                                         ? "add devices to the inventory file"
                                         : "if there should be some, see the line of the drivers");
}

/* Checks whether this user can open a device file. Returns whether it is good. */
static bool check_file(const struct doctor_facts *facts, const struct device *device,
                       const char *node, struct doctor_report *report)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s%s", facts->sysroot, node);
    if (access(path, R_OK | W_OK) == 0)
        return true;
    doctor_report_add(report, DOCTOR_PROBLEM, "%s: you cannot open %s: %s",
                      device_id_format(device->id).text, node, strerror(errno));
    doctor_report_advise(report,
                         "join the group that owns it (ls -l %s), usually: usermod -aG "
                         "render,video NAME, then log in again",
                         node);
    return false;
}

/* CUDA needs this file, and not every distribution creates it at boot. */
static void check_uvm(const struct doctor_facts *facts, struct doctor_report *report)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/dev/nvidia-uvm", facts->sysroot);
    if (access(path, F_OK) == 0 || errno != ENOENT)
        return;
    doctor_report_add(report, DOCTOR_WARNING, "/dev/nvidia-uvm is missing: CUDA cannot start");
    doctor_report_advise(report, "run as root: nvidia-modprobe -u -c=0");
}

void doctor_hardware_check_files(const struct doctor_facts *facts, struct doctor_report *report)
{
    const struct device *device;
    bool has_nvidia = false;
    size_t good = 0;

    if (facts->inventory != NULL) {
        doctor_report_add(report, DOCTOR_OK,
                          "none needed: the devices come from an inventory file");
        return;
    }
    if (facts->probe_error.code != 0) {
        doctor_report_add(report, DOCTOR_UNKNOWN, "the devices are not known");
        doctor_report_advise(report, "see the line of the probe");
        return;
    }
    if (facts->machine.machine.devices.count == 0) {
        doctor_report_add(report, DOCTOR_OK, "none needed: no device was found");
        return;
    }
    vector_for_each (device, &facts->machine.machine.devices) {
        char *const *node;

        has_nvidia |= device->id.vendor == VENDOR_NVIDIA;
        if (device->nodes.count == 0) {
            doctor_report_add(report, DOCTOR_WARNING, "%s has no device files",
                              device_id_format(device->id).text);
            doctor_report_advise(report, has_nvidia ? "run as root: nvidia-modprobe -c=0 -u"
                                                    : "see the kernel's log (dmesg)");
        }
        vector_for_each (node, &device->nodes)
            good += check_file(facts, device, *node, report);
    }
    if (has_nvidia)
        check_uvm(facts, report);
    if (good > 0)
        doctor_report_add(report, DOCTOR_OK, "%zu can be opened", good);
}
