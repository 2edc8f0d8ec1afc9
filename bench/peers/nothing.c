/* SPDX-License-Identifier: Apache-2.0
 *
 * The minimum of a program: the cost of the kernel and the dynamic linker alone.
 */
int main(void)
{
    return 0;
}
