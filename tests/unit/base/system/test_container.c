/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/system/container.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "support/exact_copy.h"
#include "support/failing_allocator.h"

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define POD   "kubepods-burstable-pod2ff6a2d6_8a5f_4a52_8d6d_4f6f7c1f9f6e.slice"

static void assert_container(const char *groups, const char *wanted)
{
    size_t length = strlen(groups);
    char *copy = exact_copy(groups, length);
    struct text found = {0};

    container_find(copy, length, &found);
    assert_false(text_failed(&found));
    assert_string_equal(text_string(&found), wanted);
    text_finish(&found);
    free(copy);
}

static void ids_are_found_whoever_made_the_container(void **state)
{
    static const char *const groups[] = {
        "0::/system.slice/docker-" ID ".scope\n",
        "0::/docker/" ID "\n",
        "0::/../" ID "\n",
        "0::/kubepods.slice/kubepods-burstable.slice/" POD "/cri-containerd-" ID ".scope\n",
        "0::/kubepods.slice/kubepods-burstable.slice/" POD "/crio-" ID ".scope\n",
        "0::/kubepods.slice/kubepods-burstable.slice/" POD "/docker-" ID ".scope\n",
        "0::/kubepods/burstable/pod2ff6a2d6-8a5f-4a52-8d6d-4f6f7c1f9f6e/" ID "\n",
        "0::/kubepods/besteffort/pod1/crio-" ID "\n",
        "0::/system.slice/containerd.service/" POD ":cri-containerd:" ID "\n",
        "0::/default/" ID "\n",
        "0::/user.slice/user-1000.slice/user@1000.service/user.slice/nerdctl-" ID ".scope\n",
        "0::/machine.slice/libpod-" ID ".scope\n",
        "0::/machine.slice/libpod-" ID ".scope/container\n",
        "0::/libpod_parent/libpod-" ID "\n",
        "0::/machine.slice/machine-libpod_pod_" OTHER ".slice/libpod-" ID ".scope/container\n",
        "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/init\n",
        "12:pids:/docker/" ID "\n11:memory:/docker/" ID "\n0::/system.slice/containerd.service\n",
        "12:cpu,cpuacct:/\n11:memory:/docker/" ID "/a/b/c\n",
        "1:name=systemd:/docker/" ID "//\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(groups); i++)
        assert_container(groups[i], ID);
    assert_container("0::/system.slice/docker-0123456789ab.scope\n", "0123456789ab");
}

static void machines_are_found_by_name(void **state)
{
    (void)state;
    assert_container("0::/lxc.payload.web\n", "web");
    assert_container("0::/lxc.payload.web/init.scope\n", "web");
    assert_container("4:memory:/lxc/web/user.slice\n", "web");
    assert_container("0::/machine.slice/systemd-nspawn@web.service/payload\n", "web");
    assert_container("0::/machine.slice/machine-my\\x2dweb\\x2e1.scope\n", "my-web.1");
    assert_container("0::/machine.slice/machine-x\\x0ay\\x00\\xfz.scope\n",
                     "x\xEF\xBF\xBDy\\x00\\xfz");
}

static void the_innermost_is_meant(void **state)
{
    (void)state;
    assert_container("0::/docker/" OTHER "/kubelet/kubepods/pod1/" ID "\n", ID);
    assert_container("0::/lxc.payload.web/docker/" ID "\n", ID);
    assert_container("0::/docker/" OTHER "/lxc.payload.web\n", "web");
}

static void most_processes_are_in_none(void **state)
{
    static const char *const groups[] = {
        "",
        "\n",
        "0::/\n",
        "0::\n",
        "0:\n",
        "::",
        "0::/user.slice/user-1000.slice/session-2.scope\n",
        "0::/system.slice/docker.service\n",
        "0::/system.slice/docker-0123456789a.scope\n",
        "0::/system.slice/docker-0123456789aG.scope\n",
        "0::/system.slice/docker-" ID "0.scope\n",
        "0::/machine.slice/libpod-conmon-" ID ".scope\n",
        "0::/crio-conmon-" ID ".scope\n",
        "0::/lxc.monitor.web\n",
        "0::/lxc.payload.\n",
        "0::/lxc\n",
        "0::/lxc/\n",
        "0::/machine.slice/machine-qemu\\x2d1\\x2dguest.scope\n",
        "0::/machine.slice/machine-.scope\n",
        "0::/machine.slice/systemd-nspawn@.service\n",
        "0::/0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF\n",
        ("0::/user.slice/docker/" ID), /* cut */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(groups); i++)
        assert_container(groups[i], "");
}

static void names_have_a_bound(void **state)
{
    char groups[2000] = "0::/lxc.payload.";
    struct text found = {0};

    (void)state;
    memset(groups + strlen(groups), 'a', sizeof(groups) - strlen(groups) - 2);
    groups[sizeof(groups) - 2] = '\n';
    container_find(groups, sizeof(groups) - 1, &found);
    assert_int_equal(found.length, 255);
    text_finish(&found);
}

static void long_ids_are_shown_shortened(void **state)
{
    (void)state;
    assert_int_equal(container_shown_length(ID), 12);
    assert_int_equal(container_shown_length("0123456789ab"), 12);
    assert_int_equal(container_shown_length("0123456789abcdef-of-names"), 25);
    assert_int_equal(container_shown_length("web"), 3);
    assert_int_equal(container_shown_length(""), 0);
}

static void no_memory_is_remembered(void **state)
{
    static const char groups[] = "0::/docker/" ID "\n";
    struct text found = {0};

    (void)state;
    failing_allocator_start(1);
    container_find(groups, sizeof(groups) - 1, &found);
    assert_true(failing_allocator_stop());
    assert_true(text_failed(&found));
    text_finish(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_found_whoever_made_the_container),
        cmocka_unit_test(machines_are_found_by_name),
        cmocka_unit_test(the_innermost_is_meant),
        cmocka_unit_test(most_processes_are_in_none),
        cmocka_unit_test(names_have_a_bound),
        cmocka_unit_test(long_ids_are_shown_shortened),
        cmocka_unit_test(no_memory_is_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
