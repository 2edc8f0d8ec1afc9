/* SPDX-License-Identifier: Apache-2.0
 *
 * The least a program can do: what the kernel and the dynamic linker cost alone.
 */
int main(void)
{
    return 0;
}
