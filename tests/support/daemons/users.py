# SPDX-License-Identifier: Apache-2.0
"""The names that berth prints for users."""
import os
import pwd


def user_name(uid=None):
    """Returns the name of a user, or the uid if the user has no name. The default is the test's user."""
    uid = os.geteuid() if uid is None else uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
