/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "client/pool_address.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/temporary_directory.h"

static const char nowhere[] = "/nonexistent/berth.sock";

/* Enters a temporary directory, with an environment that names no pool. */
static int enter(void **state)
{
    unsetenv("BERTH_SOCKET");
    unsetenv("BERTH_LEASE");
    unsetenv("BERTH_RUNTIME_DIR");
    unsetenv("BERTH_INVENTORY");
    unsetenv("XDG_RUNTIME_DIR");
    return temporary_directory_enter(state);
}

static int find_address(const char *machine, const char *inventory, struct pool_address *address,
                        struct berth_error *error)
{
    const struct pool_places places = {machine, "/tmp", "/nonexistent"};

    return pool_address_find_in(&places, inventory, address, error);
}

static void make_file(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(file >= 0);
    close(file);
}

static struct pool_address found(const char *machine, const char *inventory)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct pool_address address = {0};
    int code = find_address(machine, inventory, &address, &error);

    assert_string_equal(error.message, "");
    assert_int_equal(code, 0);
    return address;
}

static void the_named_socket_comes_first(void **state)
{
    struct pool_address address;

    setenv("BERTH_SOCKET", "/some/where/pool.sock", 1);
    setenv("BERTH_RUNTIME_DIR", "/else/where", 1);
    make_file("machine.sock");
    make_file("inventory.yaml");
    address = found("machine.sock", "inventory.yaml");
    assert_string_equal(address.socket, "/some/where/pool.sock");
    assert_string_equal(address.directory, "/some/where");
    assert_false(address.own);
    assert_false(address.machine);
    assert_int_equal(address.inventory[0], '/');
    assert_string_equal(strrchr(address.inventory, '/'), "/inventory.yaml");
    pool_address_finish(&address);
    assert_null(address.socket);
    setenv("BERTH_SOCKET", "/pool.sock", 1);
    address = found(nowhere, NULL);
    assert_string_equal(address.directory, "/");
    assert_null(address.inventory);
    pool_address_finish(&address);
    (void)state;
}

static void then_the_machines(void **state)
{
    struct pool_address address;
    char *path;

    assert_true(asprintf(&path, "%s/berth.sock", (char *)*state) > 0);
    assert_int_equal(symlink("/nonexistent", path), 0);
    setenv("BERTH_RUNTIME_DIR", "/else/where", 1);
    setenv("BERTH_SOCKET", "", 1);
    address = found(path, NULL);
    assert_string_equal(address.socket, path);
    assert_string_equal(address.directory, *state);
    assert_false(address.own);
    assert_true(address.machine);
    pool_address_finish(&address);
    free(path);
}

static void then_the_users_own(void **state)
{
    struct pool_address address = found(nowhere, NULL);
    char wanted[64];

    (void)state;
    snprintf(wanted, sizeof(wanted), "/tmp/berth-%ju", (uintmax_t)geteuid());
    assert_string_equal(address.directory, wanted);
    strcat(wanted, "/berth.sock");
    assert_string_equal(address.socket, wanted);
    assert_true(address.own);
    assert_false(address.machine);
    pool_address_finish(&address);
    setenv("BERTH_RUNTIME_DIR", "/else/where//", 1);
    address = found("machine.sock/below", NULL);
    assert_string_equal(address.directory, "/else/where");
    assert_string_equal(address.socket, "/else/where/berth.sock");
    pool_address_finish(&address);
    setenv("BERTH_RUNTIME_DIR", "", 1);
    setenv("BERTH_INVENTORY", "", 1);
    address = found(nowhere, NULL);
    assert_memory_equal(address.directory, "/tmp/berth-", 11);
    assert_null(address.inventory);
    pool_address_finish(&address);
}

static void an_inventory_has_a_pool_of_its_own(void **state)
{
    struct pool_address first;
    struct pool_address second;
    const char *name;

    (void)state;
    setenv("BERTH_RUNTIME_DIR", "/run/me", 1);
    make_file("machine.sock");
    make_file("a.yaml");
    make_file("b.yaml");
    assert_int_equal(symlink("a.yaml", "link.yaml"), 0);
    setenv("BERTH_INVENTORY", "b.yaml", 1);
    first = found("machine.sock", "./a.yaml");
    second = found("machine.sock", "link.yaml");
    assert_true(first.own);
    assert_string_equal(first.directory, second.directory);
    assert_string_equal(first.inventory, second.inventory);
    assert_memory_equal(first.directory, "/run/me/", 8);
    name = first.directory + 8;
    assert_int_equal(strlen(name), 16);
    assert_int_equal(strspn(name, "0123456789abcdef"), 16);
    pool_address_finish(&second);
    second = found("machine.sock", NULL);
    assert_string_not_equal(first.directory, second.directory);
    assert_string_equal(strrchr(second.inventory, '/'), "/b.yaml");
    pool_address_finish(&first);
    pool_address_finish(&second);
}

/* Every version must give the directory the same name. */
static void the_name_of_an_inventory_stays(void **state)
{
    struct pool_address address;

    (void)state;
    setenv("BERTH_RUNTIME_DIR", "/run/me", 1);
    address = found(nowhere, "/dev/null");
    assert_string_equal(address.directory, "/run/me/8cd2d180bbd995df");
    pool_address_finish(&address);
}

static void wrong_paths_are_refused(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct pool_address address = {.own = true};

    (void)state;
    assert_fails(find_address(nowhere, "", &address, &error), BERTH_ERROR_INVALID, &error,
                 "--inventory: expected a file, got nothing");
    assert_fails(find_address(nowhere, "absent.yaml", &address, &error), BERTH_ERROR_NOT_FOUND,
                 &error, "cannot read absent.yaml: No such file or directory");
    setenv("BERTH_RUNTIME_DIR", "here", 1);
    assert_fails(find_address(nowhere, NULL, &address, &error), BERTH_ERROR_INVALID, &error,
                 "BERTH_RUNTIME_DIR: expected an absolute path, got 'here'");
    setenv("BERTH_SOCKET", "there", 1);
    assert_fails(find_address(nowhere, NULL, &address, &error), BERTH_ERROR_INVALID, &error,
                 "BERTH_SOCKET: expected an absolute path, got 'there'");
    assert_true(address.own);
    assert_null(address.socket);
}

/* A directory that is not accessible is an error. */
static void a_closed_directory_of_the_machine_is_an_error(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct pool_address address = {0};
    char *path;

    assert_true(asprintf(&path, "%s/closed/berth.sock", (char *)*state) > 0);
    assert_int_equal(mkdir("closed", 0), 0);
    if (getuid() == 0)
        assert_int_equal(seteuid(12345), 0);
    assert_int_equal(find_address(path, NULL, &address, &error), BERTH_ERROR_PERMISSION);
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
    free(path);
}

static int find_with_little_memory(void *context)
{
    struct pool_address address = {0};
    int code = find_address(context, "/dev/null", &address, NULL);

    if (code == 0)
        pool_address_finish(&address);
    return code;
}

static void every_allocation_may_fail(void **state)
{
    char path[] = "/nonexistent";

    (void)state;
    failing_allocator_try_all(find_with_little_memory, path);
    setenv("BERTH_SOCKET", "/somewhere/berth.sock", 1);
    failing_allocator_try_all(find_with_little_memory, path);
}

#define address_test(test) cmocka_unit_test_setup_teardown(test, enter, temporary_directory_leave)

static void within_a_lease_the_socket_may_be_our_own(void **state)
{
    struct pool_address address;
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    setenv("BERTH_RUNTIME_DIR", "/else/where", 1);
    setenv("BERTH_SOCKET", "/else/where/berth.sock", 1);
    /* BERTH_SOCKET names a running daemon, so none is started. */
    assert_int_equal(find_address("/no/machine", NULL, &address, &error), 0);
    assert_false(address.own || address.machine);
    pool_address_finish(&address);
    setenv("BERTH_LEASE", "7", 1);
    assert_int_equal(find_address("/no/machine", NULL, &address, &error), 0);
    assert_true(address.own);
    assert_string_equal(address.socket, "/else/where/berth.sock");
    assert_string_equal(address.directory, "/else/where");
    pool_address_finish(&address);
    setenv("BERTH_SOCKET", "/the/machines/berth.sock", 1);
    assert_int_equal(find_address("/the/machines/berth.sock", NULL, &address, &error), 0);
    assert_true(!address.own && address.machine);
    pool_address_finish(&address);
    assert_int_equal(find_address("/no/machine", NULL, &address, &error), 0);
    assert_false(address.own || address.machine);
    pool_address_finish(&address);
}

/* ---- A default directory that another user has created ---- */

/* Returns a path with the uid in the middle, which is valid until the next call. */
static const char *with_uid(const char *before, const char *after)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s%ju%s", before, (uintmax_t)geteuid(), after);
    return path;
}

/* Checks where the own daemon's directory is. */
static void check_directory(const char *temporary, const char *run_user, const char *wanted)
{
    const struct pool_places places = {nowhere, temporary, run_user};
    struct berth_error error = BERTH_ERROR_INIT;
    struct pool_address address;

    assert_int_equal(pool_address_find_in(&places, NULL, &address, &error), 0);
    assert_true(address.own);
    assert_string_equal(address.directory, wanted);
    assert_int_equal(strncmp(address.socket, wanted, strlen(wanted)), 0);
    assert_string_equal(address.socket + strlen(wanted), "/berth.sock");
    pool_address_finish(&address);
}

static void make_directory(const char *path)
{
    assert_int_equal(mkdir(path, 0700), 0);
}

static void squat(void)
{
    if (geteuid() != 0)
        skip(); /* only root can change a directory's owner */
    make_directory("tmp");
    make_directory(with_uid("tmp/berth-", ""));
    assert_int_equal(chown(with_uid("tmp/berth-", ""), 65534, 65534), 0);
}

static void a_squatted_default_moves_to_the_runtime_directory(void **state)
{
    char *session;
    char *own;

    squat();
    check_directory("tmp", "run",
                    with_uid("tmp/berth-", "")); /* nowhere else to go: refused later */
    make_directory("run");
    make_directory(with_uid("run/", ""));
    check_directory("tmp", "run", with_uid("run/", "/berth"));
    assert_true(asprintf(&session, "%s/session", (char *)*state) > 0);
    assert_true(asprintf(&own, "%s/berth", session) > 0);
    setenv("XDG_RUNTIME_DIR", session, 1);
    check_directory("tmp", "run", with_uid("run/", "/berth")); /* it does not exist */
    assert_int_equal(mkdir(session, 0700), 0);
    check_directory("tmp", "run", own);
    assert_int_equal(chmod(session, 0755), 0);
    check_directory("tmp", "run", with_uid("run/", "/berth")); /* others may enter */
    assert_int_equal(chmod(session, 0700), 0);
    assert_int_equal(chown(session, 65534, 65534), 0);
    check_directory("tmp", "run", with_uid("run/", "/berth")); /* it belongs to another user */
    setenv("XDG_RUNTIME_DIR", "session", 1);
    check_directory("tmp", "run", with_uid("run/", "/berth")); /* it is relative */
    free(session);
    free(own);
}

static void a_named_directory_is_never_replaced(void **state)
{
    (void)state;
    squat();
    make_directory("run");
    make_directory(with_uid("run/", ""));
    setenv("BERTH_RUNTIME_DIR", "/else/where", 1);
    check_directory("tmp", "run", "/else/where");
}

/* Another user must not split a pool in two by removing the directory again. */
static void a_pool_stays_where_it_moved(void **state)
{
    (void)state;
    make_directory("tmp");
    make_directory("run");
    make_directory(with_uid("run/", ""));
    check_directory("tmp", "run", with_uid("tmp/berth-", ""));
    make_directory(with_uid("run/", "/berth"));
    check_directory("tmp", "run", with_uid("run/", "/berth"));
    make_directory(with_uid("tmp/berth-", ""));
    check_directory("tmp", "run", with_uid("tmp/berth-", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        address_test(the_named_socket_comes_first),
        address_test(then_the_machines),
        address_test(then_the_users_own),
        address_test(an_inventory_has_a_pool_of_its_own),
        address_test(the_name_of_an_inventory_stays),
        address_test(within_a_lease_the_socket_may_be_our_own),
        address_test(wrong_paths_are_refused),
        address_test(a_closed_directory_of_the_machine_is_an_error),
        address_test(a_squatted_default_moves_to_the_runtime_directory),
        address_test(a_named_directory_is_never_replaced),
        address_test(a_pool_stays_where_it_moved),
        address_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
