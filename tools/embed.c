/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns files into C, for the build; not installed.
 *
 *     embed FILE...            prints the array `assets` for berth-web: bytes, types and tags
 *     embed --text NAME FILE   prints the file as the string NAME
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *ending;
    const char *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".json", "application/json"},
    {".txt", "text/plain; charset=utf-8"},
};

static void give_up(const char *path, const char *why)
{
    fprintf(stderr, "embed: %s: %s\n", path, why);
    exit(1);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

static const char *type_of(const char *path)
{
    const char *ending = strrchr(path, '.');

    for (size_t i = 0; ending != NULL && i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].ending, ending) == 0)
            return types[i].type;
    }
    give_up(path, "unknown type of file");
    return NULL;
}

/* Prints the bytes and returns their number. */
static size_t print_bytes(const char *path, unsigned number, uint64_t *ret_hash)
{
    FILE *file = fopen(path, "rb");
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    size_t count = 0;
    int byte;

    if (file == NULL)
        give_up(path, "cannot open the file");
    printf("static const unsigned char bytes_%u[] = {", number);
    while ((byte = getc(file)) != EOF) {
        printf("%s%d,", count++ % 24 == 0 ? "\n" : "", byte);
        hash = (hash ^ (unsigned char)byte) * UINT64_C(0x100000001B3);
    }
    if (ferror(file) || fclose(file) != 0)
        give_up(path, "cannot read the file");
    /* An array has at least one item. */
    printf("0};\n");
    *ret_hash = hash;
    return count;
}

static int print_assets(int argc, char **argv)
{
    size_t *lengths = calloc((size_t)argc, sizeof(*lengths));
    uint64_t *hashes = calloc((size_t)argc, sizeof(*hashes));

    if (lengths == NULL || hashes == NULL)
        give_up("assets", "out of memory");
    printf("#include \"web/assets.h\"\n\n");
    for (int i = 1; i < argc; i++)
        lengths[i] = print_bytes(argv[i], (unsigned)i, &hashes[i]);
    printf("const struct asset assets[] = {\n");
    for (int i = 1; i < argc; i++)
        printf("    {\"%s\", \"%s\", \"\\\"%016" PRIx64 "\\\"\", (const char *)bytes_%d, %zu},\n",
               name_of(argv[i]), type_of(argv[i]), hashes[i], i, lengths[i]);
    printf("    {0},\n};\n");
    free(lengths);
    free(hashes);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int print_text(const char *name, const char *path)
{
    uint64_t hash;

    print_bytes(path, 1, &hash);
    printf("extern const char *const %s;\nconst char *const %s = (const char *)bytes_1;\n", name,
           name);
    return fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--text") == 0)
        return print_text(argv[2], argv[3]);
    return print_assets(argc, argv);
}
